/* SPDX-License-Identifier: MIT */
/* The same program in C. */
#include <ftn_pytorch.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv) {
  (void)argc;
  float x[3] = {1, 2, 3}, y[3];
  const int64_t extent = 3;
  fpt_module model = 0;
  fpt_arg input, output;
  fpt_arg_array(&input, x, FPT_FLOAT32, 1, &extent, NULL, FPT_IN);
  fpt_arg_array(&output, y, FPT_FLOAT32, 1, &extent, NULL, FPT_OUT);
  if (fpt_module_load(&model, 0, argv[1], (int64_t)strlen(argv[1]), NULL, 0, NULL, 0) != FPT_OK ||
      fpt_module_forward(model, &input, 1, &output, 1, NULL, 0) != FPT_OK) {
    const char *text;
    int64_t length;
    fpt_error_text(&text, &length);
    fprintf(stderr, "%.*s\n", (int)length, text);
    return 1;
  }
  printf("%.0f\n", y[0] + y[1] + y[2]);
  return 0;
}
