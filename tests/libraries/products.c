/* SPDX-License-Identifier: MIT */
/* A BLAS that is right. With 8-byte integers, as codes have it that are built with -i8, torch cannot use it. */
#include <stdint.h>
#include <stdlib.h>

#ifdef WIDE
typedef int64_t Integer;
#else
typedef int Integer;
#endif

#define GEMM(name, type)                                                                                             \
  void name(const char *ta, const char *tb, const Integer *m, const Integer *n, const Integer *k, const type *alpha, \
            const type *a, const Integer *lda, const type *b, const Integer *ldb, const type *beta, type *c,         \
            const Integer *ldc) {                                                                                    \
    if (*m < 0 || *n < 0 || *k < 0 || *lda < 1 || *ldb < 1 || *ldc < *m) abort();                                    \
    for (Integer j = 0; j < *n; ++j)                                                                                 \
      for (Integer i = 0; i < *m; ++i) {                                                                             \
        type sum = 0;                                                                                                \
        for (Integer l = 0; l < *k; ++l)                                                                             \
          sum += (*ta == 'N' || *ta == 'n' ? a[i + l * *lda] : a[l + i * *lda]) *                                    \
                 (*tb == 'N' || *tb == 'n' ? b[l + j * *ldb] : b[j + l * *ldb]);                                     \
        c[i + j * *ldc] = *alpha * sum + (*beta == 0 ? 0 : *beta * c[i + j * *ldc]);                                 \
      }                                                                                                              \
  }
GEMM(sgemm_, float)
GEMM(dgemm_, double)
