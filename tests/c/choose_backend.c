/* SPDX-License-Identifier: MIT */
/* Load a model and say what runs it: choose_backend <file> <backend> [<preloaded library>]. For tests/direct. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "ftn_pytorch.h"
#include "is_mapped.h"

static void show(const char *text, int64_t length) { printf("warning: %.*s\n", (int)length, text); }

int main(int count, char **arguments) {
  fpt_arg option;
  fpt_module module = 0;
  const char *text = NULL;
  int64_t length = 0;
  if (count < 3) return 2;
  if (count > 3 && !dlopen(arguments[3], RTLD_NOW)) return 2;
  fpt_on_warning(show);
  fpt_arg_text(&option, arguments[2], (int64_t)strlen(arguments[2]), FPT_IN);
  fpt_arg_name(&option, "backend", 7);
  const fpt_status status =
      fpt_module_load(&module, 1, arguments[1], (int64_t)strlen(arguments[1]), &option, 1, NULL, 0);
  if (status != FPT_OK) {
    fpt_error_text(&text, &length);
    printf("%s: %.*s\n", fpt_status_name(status), (int)length, text);
    return 1;
  }
  fpt_module_backend(module, &text, &length);
  printf("backend: %.*s\n", (int)length, text);
  printf("python: %d\n", is_mapped("libpython"));
  fpt_module_free(module);
  return 0;
}
