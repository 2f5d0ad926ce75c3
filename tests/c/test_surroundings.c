/* SPDX-License-Identifier: MIT */
/* Everything of a process that a library can disturb, noted before the first load and looked at again after loads,
 * calls, training and failures: locale, folder, umask, handlers and masks of signals, environment, random numbers of C,
 * affinity, limits, floating-point environment, timers, and what waits in the buffers of standard input and output. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <fenv.h>
#include <ftn_pytorch.h>
#include <locale.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

enum { signals = 32, known_flags = SA_NOCLDSTOP | SA_NOCLDWAIT | SA_NODEFER | SA_ONSTACK | SA_RESTART | SA_SIGINFO };

struct surroundings {
  char locale[400], folder[400], zone[40];
  mode_t mask;
  struct sigaction handlers[signals];
  sigset_t blocked;
  char **environment;
  cpu_set_t cores;
  struct rlimit limits[RLIM_NLIMITS];
  struct itimerval timer;
  int rounding, flags, traps, priority, flags_of_files[3];
  size_t waiting, buffers[2];
};

static int failures = 0;

static void expect(int good, const char *what) {
  if (good) return;
  ++failures;
  fprintf(stderr, "FAILED: %s\n", what);
}

static char **copy_of_environment(void) {
  size_t count = 0, i;
  char **copy;
  while (environ[count]) ++count;
  copy = calloc(count + 1, sizeof *copy);
  for (i = 0; copy && i < count; ++i) copy[i] = strdup(environ[i]);
  return copy;
}

static void look(struct surroundings *s) {
  int i;
  memset(s, 0, sizeof *s);
  strncpy(s->locale, setlocale(LC_ALL, NULL), sizeof s->locale - 1);
  if (!getcwd(s->folder, sizeof s->folder)) expect(0, "getcwd");
  strncpy(s->zone, tzname[0], sizeof s->zone - 1);
  s->mask = umask(0);
  umask(s->mask);
  for (i = 1; i < signals; ++i) sigaction(i, NULL, &s->handlers[i]);
  sigprocmask(SIG_BLOCK, NULL, &s->blocked);
  s->environment = copy_of_environment();
  sched_getaffinity(0, sizeof s->cores, &s->cores);
  for (i = 0; i < RLIM_NLIMITS; ++i) getrlimit(i, &s->limits[i]);
  getitimer(ITIMER_REAL, &s->timer);
  s->priority = getpriority(PRIO_PROCESS, 0);
  s->rounding = fegetround();
  s->flags = fetestexcept(FE_ALL_EXCEPT);
  s->traps = fegetexcept();
  for (i = 0; i < 3; ++i) s->flags_of_files[i] = fcntl(i, F_GETFL);
  s->waiting = __fpending(stdout);
  s->buffers[0] = __fbufsize(stdin);
  s->buffers[1] = __fbufsize(stdout);
}

static void compare_environments(char **before, char **after) {
  for (; *before; ++before) {
    char **found = after;
    while (*found && strcmp(*found, *before) != 0) ++found;
    if (!*found) expect(0, *before);
  }
}

/* Nobody's: of these, the library makes use of those that the program does not handle, for a traceback of Python. */
static int is_free(int number, const struct sigaction *action) {
  const int is_fatal =
      number == SIGSEGV || number == SIGBUS || number == SIGILL || number == SIGFPE || number == SIGABRT;
  return is_fatal && action->sa_handler == SIG_DFL;
}

static void compare(const struct surroundings *before, const char *when) {
  struct surroundings now;
  int i;
  const int had = failures;
  look(&now);
  expect(strcmp(now.locale, before->locale) == 0, "locale");
  expect(strcmp(now.folder, before->folder) == 0, "working directory");
  expect(strcmp(now.zone, before->zone) == 0, "time zone");
  expect(now.mask == before->mask, "umask");
  for (i = 1; i < signals; ++i)
    if (is_free(i, &before->handlers[i]))
      continue;
    else if (now.handlers[i].sa_handler != before->handlers[i].sa_handler ||
             ((now.handlers[i].sa_flags ^ before->handlers[i].sa_flags) & known_flags))
      expect(0, strsignal(i));
  expect(memcmp(&now.blocked, &before->blocked, sizeof now.blocked) == 0, "blocked signals");
  compare_environments(before->environment, now.environment);
  expect(CPU_EQUAL(&now.cores, &before->cores), "affinity");
  expect(memcmp(now.limits, before->limits, sizeof now.limits) == 0, "limits");
  expect(memcmp(&now.timer.it_interval, &before->timer.it_interval, sizeof now.timer.it_interval) == 0, "timer");
  expect(now.priority == before->priority, "priority");
  expect(now.rounding == before->rounding, "rounding");
  expect(now.flags == before->flags, "floating-point exceptions");
  expect(now.traps == before->traps, "traps");
  expect(memcmp(now.flags_of_files, before->flags_of_files, sizeof now.flags_of_files) == 0, "flags of standard files");
  expect(now.waiting == before->waiting, "text that waits in the buffer of standard output");
  expect(memcmp(now.buffers, before->buffers, sizeof now.buffers) == 0, "buffers of standard files");
  if (failures > had) fprintf(stderr, "  ... are not as they were, after %s\n", when);
}

static const char script_file[] = "test_surroundings_script.py";
static const char script[] =
    "import random\n"
    "import numpy, torch\n"
    "net = torch.nn.Linear(4, 4)\n"
    "optimizer = torch.optim.Adam(net.parameters())\n"
    "def ftn_pytorch_forward(x):\n"
    "    random.random(); numpy.random.rand(3); torch.rand(3)\n"
    "    return torch.log(net(x) * 0)\n"
    "def ftn_pytorch_train(x, target):\n"
    "    optimizer.zero_grad()\n"
    "    loss = torch.nn.functional.mse_loss(net(x), target)\n"
    "    loss.backward()\n"
    "    optimizer.step()\n"
    "    return False, loss\n"
    "def fails(): raise ValueError(torch.zeros(1) / torch.zeros(1))\n";

static void call(fpt_module module) {
  static float x[8], y[8];
  const int64_t extents[2] = {4, 2};
  fpt_arg in, out;
  int32_t completed;
  double loss;
  fpt_arg_array(&in, x, FPT_FLOAT32, 2, extents, NULL, FPT_IN);
  fpt_arg_array(&out, y, FPT_FLOAT32, 2, extents, NULL, FPT_OUT);
  expect(fpt_module_forward(module, &in, 1, &out, 1, NULL, 0) == FPT_OK, "forward");
  expect(fpt_module_train(module, &in, 1, &in, 1, &completed, &loss) == FPT_OK, "train");
  expect(fpt_module_call(module, "fails", 5, NULL, 0, NULL, 0, NULL) == FPT_ERR_PYTHON, "fails");
}

static void handle(int number) { (void)number; }

static void load(fpt_module *module) {
  const char *text = "";
  int64_t length = 0;
  if (fpt_module_load(module, 0, script_file, (int64_t)strlen(script_file), NULL, 0, NULL, 0) == FPT_OK) return;
  fpt_error_text(&text, &length);
  fprintf(stderr, "%.*s\n", (int)length, text);
  exit(3);
}

int main(void) {
  static char input[256], output[256];
  char line[64] = "";
  struct surroundings before;
  fpt_module module = 0;
  int ends[2], i, expected[20], random_numbers[20];
  double uniform[20];
  FILE *file = fopen(script_file, "w");
  if (!file || fputs(script, file) < 0 || fclose(file) != 0 || pipe(ends) != 0) return 2;

  /* standard input with half of it read, standard output with a text that was not flushed */
  if (write(ends[1], "first\nsecond\n", 13) != 13 || close(ends[1]) != 0 || dup2(ends[0], STDIN_FILENO) < 0) return 2;
  setvbuf(stdin, input, _IOFBF, sizeof input);
  setvbuf(stdout, output, _IOFBF, sizeof output);
  if (!fgets(line, sizeof line, stdin)) return 2;
  printf("still in the buffer");
  setlocale(LC_ALL, "C.UTF-8");
  umask(027);
  for (i = 1; i < signals; i += 3)
    if (i != SIGKILL && i != SIGSTOP && i != SIGFPE) signal(i, handle);
  setenv("LANG", "C", 1);
  setenv("OMP_PROC_BIND", "true", 1);
  setenv("PYTHONUNBUFFERED", "1", 1);
  srand(7);
  srand48(7);
  for (i = 0; i < 20; ++i) expected[i] = rand(), uniform[i] = drand48();
  srand(7);
  srand48(7);
  tzset();
  fesetround(FE_UPWARD);
  feclearexcept(FE_ALL_EXCEPT);
  feraiseexcept(FE_INEXACT | FE_UNDERFLOW);
  feenableexcept(FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW);
  look(&before);

  load(&module);
  compare(&before, "load");
  for (i = 0; i < 20; ++i) {
    random_numbers[i] = rand();
    expect(drand48() == uniform[i], "drand48");
    call(module);
    compare(&before, "calls");
  }
  expect(memcmp(random_numbers, expected, sizeof expected) == 0, "rand");
  expect(fpt_module_reload(module) == FPT_OK, "reload");
  expect(fpt_set_threads(2) == FPT_OK, "set_threads");
  fpt_module_free(module);
  compare(&before, "reload and free");
  fedisableexcept(FE_ALL_EXCEPT);

  expect(fgets(line, sizeof line, stdin) && strcmp(line, "second\n") == 0, "rest of standard input");
  remove(script_file);
  printf("\n");
  return failures != 0;
}
