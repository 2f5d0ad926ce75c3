/* SPDX-License-Identifier: MIT */
/* Another component of the program embeds Python (<libpython>) as if it were alone: it never asks for the lock, keeps
 * objects, runs code between the calls of this library, and ends Python first, if it has started it or thinks so. Who
 * comes first starts Python. Each case has a process of its own. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <ftn_pytorch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct PyObject PyObject;
static void (*initialize)(void), (*release)(PyObject *);
static int (*finalize)(void), (*is_initialized)(void), (*run_code)(const char *, void *);
static PyObject *(*add_module)(const char *), *(*dict_of)(PyObject *), *(*item_of)(PyObject *, const char *);
static PyObject *(*compile)(const char *, const char *, int, void *, int),
    *(*evaluate)(PyObject *, PyObject *, PyObject *);
static PyObject *(*raised)(void);
static long (*as_long)(PyObject *);
static int (*ensure)(void);
static void (*release_state)(int);

static int failures = 0;

static void expect(int as_wanted, const char *what) {
  const char *text;
  int64_t length;
  if (as_wanted) return;
  fpt_error_text(&text, &length);
  fprintf(stderr, "%s (%.*s)\n", what, (int)length, text);
  ++failures;
}

static void *find(const char *name) {
  void *found = dlsym(RTLD_DEFAULT, name);
  if (!found) exit(4);
  return found;
}

/* Pointers to functions come from dlsym() as POSIX has it. */
static void find_python(void) {
  *(void **)&initialize = find("Py_Initialize");
  *(void **)&finalize = find("Py_FinalizeEx");
  *(void **)&is_initialized = find("Py_IsInitialized");
  *(void **)&run_code = find("PyRun_SimpleStringFlags");
  *(void **)&add_module = find("PyImport_AddModule");
  *(void **)&dict_of = find("PyModule_GetDict");
  *(void **)&item_of = find("PyDict_GetItemString");
  *(void **)&compile = find("Py_CompileStringExFlags");
  *(void **)&evaluate = find("PyEval_EvalCode");
  *(void **)&raised = find("PyErr_Occurred");
  *(void **)&as_long = find("PyLong_AsLong");
  *(void **)&release = find("Py_DecRef");
  *(void **)&ensure = find("PyGILState_Ensure");
  *(void **)&release_state = find("PyGILState_Release");
}

/* ---- the other component ------------------------------------------------------------------------------------- */

static PyObject *their_names, *their_code;
static int they_end_python;

static void they_begin(int always_end) {
  they_end_python = always_end || !is_initialized();
  initialize(); /* nothing happens where Python runs */
  /* as Python finds its packages where no environment is active */
  expect(run_code("import os, site, sys\n"
                  "prefix = os.path.dirname(os.path.dirname(os.environ['FTN_PYTORCH_PYTHON']))\n"
                  "site.addsitedir(f'{prefix}/lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages')\n"
                  "import atexit, io, traceback\n"
                  "count = 0\n"
                  "atexit.register(lambda: sys.stderr.write('their exit function\\n'))\n",
                  NULL) == 0,
         "their imports");
  their_names = dict_of(add_module("__main__"));
  their_code = compile("count += sum([1])\n", "their_script.py", 257 /* Py_file_input */, NULL, -1);
  expect(their_code != NULL, "their code is compiled");
}

static void they_run(long runs) {
  PyObject *result;
  int state;
  initialize();
  result = evaluate(their_code, their_names, their_names);
  expect(result != NULL && raised() == NULL, "their code runs");
  if (result) release(result);
  state = ensure();
  expect(as_long(item_of(their_names, "count")) == runs, "their names stay");
  release_state(state);
}

static void they_end(void) {
  release(their_code);
  if (they_end_python) expect(finalize() == 0, "their end of Python");
}

/* ---- ours ----------------------------------------------------------------------------------------------------- */

static const char with_torch[] =
    "import torch\n"
    "net = torch.nn.Linear(2, 2, dtype=torch.float64)\n"
    "def f(x): return net(x)\n"
    "def kept(): return torch.ones(3, requires_grad=True) * 2\n";
static const char without_torch[] =
    "import numpy\n"
    "def f(x): return 2 * x\n"
    "def kept(): return numpy.ones(3)\n";
static fpt_module module = 0;
static fpt_results results = 0;
static fpt_tensor tensor = 0;
static double x[4] = {1, 2, 3, 4}, y[4];

static void we_begin(const char *source) {
  char name[64];
  FILE *file;
  snprintf(name, sizeof name, "test_two_embedders_%ld.py", (long)getpid());
  file = fopen(name, "w");
  if (!file || fputs(source, file) < 0 || fclose(file) != 0) exit(5);
  expect(fpt_module_load(&module, 0, name, (int64_t)strlen(name), NULL, 0, NULL, 0) == FPT_OK, "load");
  remove(name);
  expect(fpt_module_call(module, "kept", 4, NULL, 0, NULL, 0, &results) == FPT_OK, "results that are kept");
  expect(fpt_results_get(results, 1, &tensor) == FPT_OK, "a tensor that is kept");
}

static fpt_status we_call(void) {
  const int64_t extents[] = {2, 2};
  fpt_arg input, output;
  if (fpt_arg_array(&input, x, FPT_FLOAT64, 2, extents, NULL, FPT_IN) != FPT_OK) return FPT_ERR_INTERNAL;
  if (fpt_arg_array(&output, y, FPT_FLOAT64, 2, extents, NULL, FPT_OUT) != FPT_OK) return FPT_ERR_INTERNAL;
  return fpt_module_call(module, "f", 1, &input, 1, &output, 1, NULL);
}

/* What the end of the program does, in whatever order: nothing of it may fail or be heard. */
static void we_end(void) {
  fpt_tensor_free(tensor);
  fpt_results_free(results);
  fpt_module_free(module);
}

static void after_the_end_of_python(void) {
  const char *text;
  int64_t length;
  int32_t has = -1;
  fpt_module another = 0;
  expect(we_call() == FPT_ERR_INTERPRETER, "a call after the end");
  fpt_error_text(&text, &length);
  expect(strstr(text, "has ended the Python of the process") != NULL, "why");
  expect(fpt_module_load(&another, 0, "other.py", 8, NULL, 0, NULL, 0) == FPT_ERR_INTERPRETER, "load after the end");
  expect(fpt_init(NULL, 0) == FPT_ERR_INTERPRETER, "init after the end");
  expect(fpt_keep_lock(1) == FPT_ERR_INTERPRETER, "keeping the lock after the end");
  expect(fpt_module_has(module, "f", 1, &has) == FPT_OK && has == 0, "nothing is there after the end");
}

static void run(int theirs_first, int keeps, int ends, const char *source) {
  long i;
  if (theirs_first) they_begin(ends);
  if (keeps) expect(fpt_keep_lock(1) == FPT_OK, "the lock is kept");
  we_begin(source);
  if (!theirs_first) they_begin(ends);
  for (i = 1; i <= 5; ++i) {
    expect(we_call() == FPT_OK, "call");
    they_run(i);
  }
  they_end();
  if (they_end_python)
    after_the_end_of_python();
  else
    expect(we_call() == FPT_OK, "a call after their end, which ends nothing");
  if (atexit(we_end) != 0) exit(6);
  exit(failures != 0);
}

/* What a case has written to standard error must be the one line of their exit function. */
static int is_quiet(FILE *heard) {
  char text[4096];
  size_t length;
  rewind(heard);
  length = fread(text, 1, sizeof text - 1, heard);
  text[length] = '\0';
  if (strcmp(text, "their exit function\n") == 0) return 1;
  fprintf(stderr, "heard:\n%s\n", text);
  return 0;
}

static int run_case(int theirs_first, int keeps, int ends, const char *source) {
  FILE *heard = tmpfile();
  int status = 0, as_wanted;
  const pid_t child = heard ? fork() : -1;
  if (child == 0) {
    dup2(fileno(heard), STDERR_FILENO);
    run(theirs_first, keeps, ends, source);
  }
  if (child < 0 || waitpid(child, &status, 0) != child) return 0;
  as_wanted = is_quiet(heard) && status == 0;
  fclose(heard);
  if (!as_wanted)
    fprintf(stderr, "FAILED: %s first, %s, %s, %s: %d\n", theirs_first ? "theirs" : "ours",
            keeps ? "lock kept" : "lock not kept", ends ? "they end Python" : "Python stays",
            source == with_torch ? "torch" : "NumPy", status);
  return as_wanted;
}

int main(int count, char **arguments) {
  int good = 0, i;
  if (count != 2 || !dlopen(arguments[1], RTLD_NOW | RTLD_GLOBAL)) return 2;
  find_python();
  for (i = 0; i < 2; ++i) {
    const char *source = i ? with_torch : without_torch;
    good += run_case(1, 0, 1, source);
    good += run_case(1, 1, 1, source);
    good += run_case(0, 1, 1, source);
    good += run_case(0, 1, 0, source);
  }
  return good != 8;
}
