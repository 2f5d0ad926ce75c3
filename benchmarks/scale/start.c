/* SPDX-License-Identifier: MIT */
/* The start of a rank: bench_start [FILE [direct] [train]]. Without a file it only runs to main. Ends with 1, and the
 * text of the library, where something fails. */
#include <ftn_pytorch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void settle(fpt_status status) {
  const char *text;
  int64_t length;
  if (status == FPT_OK) return;
  fpt_error_text(&text, &length);
  fprintf(stderr, "%.*s\n", (int)length, text);
  exit(1);
}

int main(int count, char *arguments[]) {
  const int64_t extents[] = {3, 2};
  float x[] = {1, 2, 3, 4, 5, 6}, y[6] = {0};
  fpt_module module = 0;
  fpt_arg input, output, backend;
  int is_direct = 0, trains = 0;
  if (count < 2) return 0;
  for (int i = 2; i < count; ++i) {
    is_direct |= strcmp(arguments[i], "direct") == 0;
    trains |= strcmp(arguments[i], "train") == 0;
  }
  fpt_arg_text(&backend, "direct", 6, FPT_IN);
  fpt_arg_name(&backend, "backend", 7);
  settle(
      fpt_module_load(&module, is_direct, arguments[1], (int64_t)strlen(arguments[1]), &backend, is_direct, NULL, 0));
  fpt_arg_array(&input, x, FPT_FLOAT32, 2, extents, NULL, FPT_IN);
  fpt_arg_array(&output, y, FPT_FLOAT32, 2, extents, NULL, FPT_OUT);
  settle(fpt_module_forward(module, &input, 1, &output, 1, NULL, 0));
  if (trains) {
    int32_t completed = 0;
    double loss = 0;
    settle(fpt_module_train(module, &input, 1, &output, 1, &completed, &loss));
  }
  return 0;
}
