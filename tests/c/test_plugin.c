/* SPDX-License-Identifier: MIT */
/* A program without Python that loads the library as a plug-in, with RTLD_LOCAL: extension modules such as NumPy's must
 * find the symbols of Python all the same. Takes the path of the library. */
#include <dlfcn.h>
#include <ftn_pytorch.h>
#include <stdio.h>
#include <string.h>

static const char script_file[] = "test_plugin_script.py";
static const char script[] = "import ctypes, numpy, torch\nassert float(torch.from_numpy(numpy.ones(3)).sum()) == 3\n";

int main(int count, char *arguments[]) {
  fpt_status (*load)(fpt_module *, int32_t, const char *, int64_t, fpt_arg[], int32_t, fpt_arg[], int32_t);
  void (*error_text)(const char **, int64_t *);
  const char *text = "";
  int64_t length = 0;
  fpt_module module = 0;
  FILE *file = fopen(script_file, "w");
  void *library = count > 1 ? dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL) : NULL;
  if (!file || fputs(script, file) < 0 || fclose(file) != 0) return 2;
  if (!library) return fprintf(stderr, "%s\n", dlerror()), 3;
  *(void **)&load = dlsym(library, "fpt_module_load");
  *(void **)&error_text = dlsym(library, "fpt_error_text");
  if (!load || !error_text) return 4;
  if (load(&module, 0, script_file, (int64_t)strlen(script_file), NULL, 0, NULL, 0) != FPT_OK) {
    error_text(&text, &length);
    fprintf(stderr, "%.*s\n", (int)length, text);
    return 5;
  }
  remove(script_file);
  /* Python lives as long as the process, whoever lets go of the library */
  return dlclose(library) != 0;
}
