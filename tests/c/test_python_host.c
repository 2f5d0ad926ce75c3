/* SPDX-License-Identifier: MIT */
/* A program that has started Python itself (<libpython>), and ends it: calls that come later fail, what is released is
 * leaked, on threads that have called before and on new ones. Only then does the program end. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <ftn_pytorch.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static const char script_file[] = "test_python_host_script.py";
static fpt_module module = 0;
static fpt_results results = 0, results_of_thread = 0;
static pthread_barrier_t barrier;
static int failures = 0;

static void expect(const char *what, fpt_status found, fpt_status wanted) {
  if (found == wanted) return;
  fprintf(stderr, "%s: %s\n", what, fpt_status_name(found));
  ++failures;
}

static fpt_status load(fpt_module *handle) {
  return fpt_module_load(handle, 0, script_file, (int64_t)strlen(script_file), NULL, 0, NULL, 0);
}

static fpt_status call(fpt_results *made) { return fpt_module_call(module, "f", 1, NULL, 0, NULL, 0, made); }

static void *call_before_and_after(void *unused) {
  fpt_results late = 0;
  expect("thread, before", call(&results_of_thread), FPT_OK);
  pthread_barrier_wait(&barrier);
  pthread_barrier_wait(&barrier);
  expect("thread, after", call(&late), FPT_ERR_INTERPRETER);
  fpt_results_free(results_of_thread);
  return unused;
}

static void *call_after(void *unused) {
  fpt_results late = 0;
  expect("new thread", call(&late), FPT_ERR_INTERPRETER);
  return unused;
}

int main(int count, char **arguments) {
  void (*initialize)(void), (*restore)(void *);
  void *(*save)(void), *state;
  int (*finalize)(void);
  pthread_t thread;
  fpt_module another = 0;
  fpt_results late = 0;
  const char *text;
  int64_t length;
  FILE *file = fopen(script_file, "w");
  if (!file || fputs("def f(): return [1.0, 2.0]\n", file) < 0 || fclose(file) != 0) return 2;
  if (count != 2 || !dlopen(arguments[1], RTLD_NOW | RTLD_GLOBAL)) return 2;
  *(void **)&initialize = dlsym(RTLD_DEFAULT, "Py_Initialize"); /* as POSIX has it */
  *(void **)&finalize = dlsym(RTLD_DEFAULT, "Py_FinalizeEx");
  *(void **)&save = dlsym(RTLD_DEFAULT, "PyEval_SaveThread");
  *(void **)&restore = dlsym(RTLD_DEFAULT, "PyEval_RestoreThread");

  initialize();
  expect("load", load(&module), FPT_OK);
  expect("call", call(&results), FPT_OK);
  state = save();
  pthread_barrier_init(&barrier, NULL, 2);
  pthread_create(&thread, NULL, call_before_and_after, NULL);
  pthread_barrier_wait(&barrier);
  restore(state);
  if (finalize() != 0) return 3;
  pthread_barrier_wait(&barrier);
  pthread_join(thread, NULL);

  pthread_create(&thread, NULL, call_after, NULL);
  pthread_join(thread, NULL);
  expect("call, after", call(&late), FPT_ERR_INTERPRETER);
  fpt_error_text(&text, &length);
  if (!strstr(text, "has ended the Python of the process")) ++failures;
  expect("reload, after", fpt_module_reload(module), FPT_ERR_INTERPRETER);
  expect("load, after", load(&another), FPT_ERR_INTERPRETER);
  initialize(); /* another Python, of which nothing that is held belongs */
  expect("call, in another Python", call(&late), FPT_ERR_INTERPRETER);
  fpt_results_free(results);
  fpt_module_free(module);
  remove(script_file);
  return failures != 0;
}
