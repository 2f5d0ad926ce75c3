/* SPDX-License-Identifier: MIT */
/* An OpenMP of another compiler, which stands in for the one that torch has: a team of one. */

void GOMP_parallel(void (*region)(void *), void *data, unsigned threads, unsigned flags) {
  (void)threads, (void)flags;
  region(data);
}
