/* SPDX-License-Identifier: MIT */
/* Arithmetic of the Fortran modules that must not raise floating-point exceptions. */
#include <float.h>
#include <math.h>

/* Called by Fortran, which declares it in fpt_module.f90. */
float fpt_single(double value);

/* To single precision without raising overflow or invalid, which would end a program that traps them. */
float fpt_single(double value) {
  volatile double bounded = value; /* conversions before the tests would raise what the tests are to avoid */
  if (isnan(value)) return NAN;
  if (isgreater(value, FLT_MAX)) return INFINITY;
  if (isless(value, -FLT_MAX)) return -INFINITY;
  return (float)bounded;
}
