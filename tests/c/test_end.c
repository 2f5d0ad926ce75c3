/* SPDX-License-Identifier: MIT */
/* The ways a program in C ends: exit code and everything that Python has printed must arrive. The program starts itself
 * again, once for each way, and reads what comes out of a pipe, where Python's output is buffered in blocks. */
#define _POSIX_C_SOURCE 200809L
#include <ftn_pytorch.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char script_file[] = "test_end_script.py";
static const char script[] =
    "import atexit, sys, threading\n"
    "atexit.register(print, 'exit function')\n"
    "sys.stdout.write('without newline ')\n"
    "def forever():\n"
    "    while True: pass\n"
    "threading.Thread(target=forever, daemon=True).start()\n";

static int run(const char *way) {
  fpt_module module = 0;
  if (fpt_module_load(&module, 0, script_file, (int64_t)strlen(script_file), NULL, 0, NULL, 0) != FPT_OK) return 99;
  if (strcmp(way, "exit") == 0) exit(3);
  if (strcmp(way, "_Exit") == 0) _Exit(4);
  if (strcmp(way, "abort") == 0) abort();
  return 5;
}

/* Run this program again; its output goes into `output`. */
static int status_of(char *program, char *way, char *output, size_t size) {
  int ends[2], status = -1;
  size_t length = 0;
  ssize_t count;
  pid_t child;
  if (pipe(ends) != 0) return -1;
  child = fork();
  if (child == 0) {
    char *arguments[] = {program, way, NULL};
    dup2(ends[1], STDOUT_FILENO);
    close(ends[0]);
    close(ends[1]);
    execv(program, arguments);
    _Exit(98);
  }
  close(ends[1]);
  while ((count = read(ends[0], output + length, size - 1 - length)) > 0) length += (size_t)count;
  output[length] = '\0';
  close(ends[0]);
  waitpid(child, &status, 0);
  return status;
}

static int check(char *program, char *way, int code, int signal_number, const char *expected) {
  char output[4096];
  const int status = status_of(program, way, output, sizeof output);
  const int good = signal_number ? WIFSIGNALED(status) && WTERMSIG(status) == signal_number
                                 : WIFEXITED(status) && WEXITSTATUS(status) == code;
  if (good && (!expected || strcmp(output, expected) == 0)) return 0;
  fprintf(stderr, "%s: status %d, output \"%s\"\n", way, status, output);
  return 1;
}

int main(int count, char *arguments[]) {
  const char *everything = "without newline exit function\n";
  int failures = 0;
  FILE *file;
  if (count > 1) return run(arguments[1]);
  file = fopen(script_file, "w");
  if (!file || fputs(script, file) < 0 || fclose(file) != 0) return 2;
  failures += check(arguments[0], "return", 5, 0, everything);
  failures += check(arguments[0], "exit", 3, 0, everything);
  failures += check(arguments[0], "_Exit", 4, 0, NULL); /* skips all handlers, as it must */
  failures += check(arguments[0], "abort", 0, SIGABRT, NULL);
  remove(script_file);
  return failures != 0;
}
