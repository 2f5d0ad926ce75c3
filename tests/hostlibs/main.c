/* SPDX-License-Identifier: MIT */
#include <stdio.h>

void run_all(void);

int main(void) {
  run_all();
  return fflush(stdout);
}
