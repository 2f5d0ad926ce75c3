/* SPDX-License-Identifier: MIT */
/* A BLAS for integers of 8 bytes, as codes have it that are built with -i8: right, and not for torch. */
#include <stdint.h>
#include <stdlib.h>

#define GEMM(name, type)                                                                                      \
  void name(const char *ta, const char *tb, const int64_t *m, const int64_t *n, const int64_t *k,             \
            const type *alpha, const type *a, const int64_t *lda, const type *b, const int64_t *ldb,          \
            const type *beta, type *c, const int64_t *ldc) {                                                  \
    if (*m < 0 || *n < 0 || *k < 0 || *lda < 1 || *ldb < 1 || *ldc < *m) abort(); /* as xerbla */             \
    for (int64_t j = 0; j < *n; ++j)                                                                          \
      for (int64_t i = 0; i < *m; ++i) {                                                                      \
        type sum = 0;                                                                                         \
        for (int64_t l = 0; l < *k; ++l)                                                                      \
          sum += (*ta == 'N' || *ta == 'n' ? a[i + l * *lda] : a[l + i * *lda]) *                             \
                 (*tb == 'N' || *tb == 'n' ? b[l + j * *ldb] : b[j + l * *ldb]);                              \
        c[i + j * *ldc] = *alpha * sum + (*beta == 0 ? 0 : *beta * c[i + j * *ldc]);                          \
      }                                                                                                       \
  }
GEMM(sgemm_, float)
GEMM(dgemm_, double)
