/* SPDX-License-Identifier: MIT */
/* C side of class_component.f90. */
#include <ISO_Fortran_binding.h>

/* Bytes from one element to the next */
int stride_of(const CFI_cdesc_t *x) { return (int)x->dim[0].sm; }
