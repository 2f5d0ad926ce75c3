/* SPDX-License-Identifier: MIT */
/* A program that has started Python itself, FPT_HOST_LIBPYTHON, before. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>

void run_all(void);

static const char as_in_an_environment[] =
    "import os, site, sys\n"
    "prefix = os.path.dirname(os.path.dirname(os.environ['FTN_PYTORCH_PYTHON']))\n"
    "site.addsitedir(f'{prefix}/lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages')\n";

int main(void) {
  void (*initialize)(void);
  int (*run_code)(const char *, void *);
  void *(*save)(void);
  if (!dlopen(getenv("FPT_HOST_LIBPYTHON"), RTLD_NOW | RTLD_GLOBAL)) return 2;
  *(void **)&initialize = dlsym(RTLD_DEFAULT, "Py_Initialize"); /* as POSIX has it */
  *(void **)&run_code = dlsym(RTLD_DEFAULT, "PyRun_SimpleStringFlags");
  *(void **)&save = dlsym(RTLD_DEFAULT, "PyEval_SaveThread");
  initialize();
  if (run_code(as_in_an_environment, NULL) != 0) return 3;
  save();
  run_all();
  return 0;
}
