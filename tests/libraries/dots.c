/* SPDX-License-Identifier: MIT */
/* Complex dot products as gfortran returns them, which torch expects in memory that it names: right, and not for it. */
#include <complex.h>

#define DOT(name, type, factor)                                                                 \
  type name(const int *n, const type *x, const int *step_x, const type *y, const int *step_y) { \
    type sum = 0;                                                                               \
    for (int i = 0; i < *n; ++i) sum += factor(x[i * *step_x]) * y[i * *step_y];                \
    return sum;                                                                                 \
  }
DOT(cdotc_, float complex, conjf)
DOT(zdotc_, double complex, conj)
DOT(cdotu_, float complex, +)
DOT(zdotu_, double complex, +)
