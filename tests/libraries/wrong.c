/* SPDX-License-Identifier: MIT */
/* A BLAS that the program has linked, with the names and types of torch's own and other numbers. */
#include <complex.h>
#include <string.h>

#define GEMM(name, type)                                                                                               \
  void name(const char *ta, const char *tb, const int *m, const int *n, const int *k, const type *alpha,               \
            const type *a, const int *lda, const type *b, const int *ldb, const type *beta, type *c, const int *ldc) { \
    (void)ta, (void)tb, (void)k, (void)alpha, (void)a, (void)lda, (void)b, (void)ldb, (void)beta;                      \
    for (int j = 0; j < *n; ++j) memset(c + (long)j * *ldc, 0, (unsigned long)*m * sizeof *c);                         \
  }
GEMM(sgemm_, float)
GEMM(dgemm_, double)
GEMM(cgemm_, float complex)
GEMM(zgemm_, double complex)
