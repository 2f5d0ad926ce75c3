/* SPDX-License-Identifier: MIT */
/* A simulation made of its arguments, done one after the other:
 *
 *   init                               start Python
 *   warnings                           print the warnings, as the Fortran modules do
 *   load=FILE  direct=FILE  reload  free    load a script, or a saved model on the direct path
 *   save=FILE  checkpoint=FOLDER  restore=PLACE
 *   forward  copied  train  out  call=NAME  call functions of it, with x(3,2) = 1..6 and y(3,2)
 *   threads                            forward three times in each of two threads
 *   fork                               forward in a child process
 *   handler  ignore                    handle SIGSEGV by leaving with code 7; ignore SIGFPE
 *   diagnose                           print the diagnosis
 *   kill  segv                         end by a signal
 *
 * Prints "NAME STATUS VALUE" for each; failures do not end it. */
#define _POSIX_C_SOURCE 200809L
#include <ftn_pytorch.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static fpt_module module = 0;
static const int64_t extents[] = {3, 2};

static void tell(const char *name, fpt_status status, double value) {
  const char *text;
  int64_t length;
  printf("%s %s %g\n", name, fpt_status_name(status), value);
  if (status != FPT_OK) {
    fpt_error_text(&text, &length);
    printf("%.*s\n", (int)length, text);
  }
  fflush(stdout);
}

static fpt_arg text_option(const char *name, const char *value) {
  fpt_arg arg;
  fpt_arg_text(&arg, value, (int64_t)strlen(value), FPT_IN);
  fpt_arg_name(&arg, name, (int64_t)strlen(name));
  return arg;
}

static void load(const char *file, int is_direct) {
  fpt_arg option = text_option("backend", "direct");
  tell("load", fpt_module_load(&module, is_direct, file, (int64_t)strlen(file), &option, is_direct, NULL, 0), 0);
}

/* x(3,2) to y(3,2), or whatever the function is */
static void run(const char *what, const char *function) {
  static float x[] = {1, 2, 3, 4, 5, 6};
  float y[6] = {0};
  double loss = 0;
  int32_t completed = 0;
  fpt_arg input, output;
  const int is_copied = strcmp(what, "copied") == 0;
  fpt_arg_array(&input, x, FPT_FLOAT32, 2, extents, NULL, is_copied ? FPT_COPY : FPT_IN);
  fpt_arg_array(&output, y, FPT_FLOAT32, 2, extents, NULL, FPT_OUT);
  fpt_status status;
  if (function)
    status = fpt_module_call(module, function, (int64_t)strlen(function), &input, 1, NULL, 0, NULL);
  else if (strcmp(what, "train") == 0)
    status = fpt_module_train(module, &input, 1, &input, 1, &completed, &loss);
  else if (strcmp(what, "out") == 0)
    status = fpt_module_call(module, "fill", 4, &input, 1, &output, 1, NULL);
  else
    status = fpt_module_forward(module, &input, 1, &output, 1, NULL, 0);
  tell(what, status, strcmp(what, "train") == 0 ? loss : y[5]);
}

static void *run_thrice(void *unused) {
  for (int i = 0; i < 3; ++i) run("forward", NULL);
  return unused;
}

static void run_in_threads(void) {
  pthread_t threads[2];
  for (int i = 0; i < 2; ++i) pthread_create(&threads[i], NULL, run_thrice, NULL);
  for (int i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
}

static void run_in_child(void) {
  const pid_t child = fork();
  int status = 0;
  if (child == 0) {
    run("forward", NULL);
    exit(0);
  }
  waitpid(child, &status, 0);
  tell("fork", FPT_OK, status);
}

static void print_warning(const char *text, int64_t length) { fprintf(stderr, "warning: %.*s\n", (int)length, text); }

static void leave(int signal_number) {
  (void)signal_number;
  static const char text[] = "the program's own handler\n";
  if (write(STDOUT_FILENO, text, sizeof text - 1) < 0) _exit(8);
  _exit(7);
}

static void diagnose(void) {
  const char *text;
  int64_t length;
  const fpt_status status = fpt_diagnose(&text, &length);
  printf("%.*s\n", (int)length, text);
  tell("diagnose", status, 0);
}

int main(int count, char *arguments[]) {
  for (int i = 1; i < count; ++i) {
    char *what = arguments[i], *value = strchr(what, '=');
    if (value) *value++ = '\0';
    if (strcmp(what, "warnings") == 0)
      fpt_on_warning(print_warning);
    else if (strcmp(what, "init") == 0)
      tell(what, fpt_init("", 0), 0);
    else if (strcmp(what, "load") == 0)
      load(value, 0);
    else if (strcmp(what, "direct") == 0)
      load(value, 1);
    else if (strcmp(what, "reload") == 0)
      tell(what, fpt_module_reload(module), 0);
    else if (strcmp(what, "save") == 0)
      tell(what, fpt_module_save(module, value, (int64_t)strlen(value)), 0);
    else if (strcmp(what, "checkpoint") == 0)
      tell(what, fpt_module_checkpoint(module, value, (int64_t)strlen(value), 3, -1), 0);
    else if (strcmp(what, "restore") == 0)
      tell(what, fpt_module_restore(module, value, (int64_t)strlen(value), 0, -1, NULL), 0);
    else if (strcmp(what, "free") == 0)
      fpt_module_free(module);
    else if (strcmp(what, "threads") == 0)
      run_in_threads();
    else if (strcmp(what, "fork") == 0)
      run_in_child();
    else if (strcmp(what, "handler") == 0)
      signal(SIGSEGV, leave);
    else if (strcmp(what, "ignore") == 0)
      signal(SIGFPE, SIG_IGN);
    else if (strcmp(what, "diagnose") == 0)
      diagnose();
    else if (strcmp(what, "kill") == 0)
      raise(SIGKILL);
    else if (strcmp(what, "segv") == 0)
      raise(SIGSEGV);
    else
      run(what, value);
  }
  return 0;
}
