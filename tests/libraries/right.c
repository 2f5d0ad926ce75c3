/* SPDX-License-Identifier: MIT */
/* A BLAS as slow as the reference, with the interface that torch expects: right. */
#include <stdlib.h>

#define GEMM(name, type)                                                                                      \
  void name(const char *ta, const char *tb, const int *m, const int *n, const int *k,             \
            const type *alpha, const type *a, const int *lda, const type *b, const int *ldb,          \
            const type *beta, type *c, const int *ldc) {                                                  \
    if (*m < 0 || *n < 0 || *k < 0 || *lda < 1 || *ldb < 1 || *ldc < *m) abort(); /* as xerbla */             \
    for (int j = 0; j < *n; ++j)                                                                          \
      for (int i = 0; i < *m; ++i) {                                                                      \
        type sum = 0;                                                                                         \
        for (int l = 0; l < *k; ++l)                                                                      \
          sum += (*ta == 'N' || *ta == 'n' ? a[i + l * *lda] : a[l + i * *lda]) *                             \
                 (*tb == 'N' || *tb == 'n' ? b[l + j * *ldb] : b[j + l * *ldb]);                              \
        c[i + j * *ldc] = *alpha * sum + (*beta == 0 ? 0 : *beta * c[i + j * *ldc]);                          \
      }                                                                                                       \
  }
GEMM(sgemm_, float)
GEMM(dgemm_, double)
