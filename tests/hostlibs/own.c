/* SPDX-License-Identifier: MIT */
/* What the program itself does with the libraries that it is linked with, before and after the paths: 0 if it is right.
 * BLAS_INTEGER is the type of their integers. */
#include <stddef.h>
#include <stdint.h>

#ifdef BLAS_INTEGER
typedef BLAS_INTEGER integer;
double ddot_(const integer *, const double *, const integer *, const double *, const integer *);
void dgemm_(const char *, const char *, const integer *, const integer *, const integer *, const double *,
            const double *, const integer *, const double *, const integer *, const double *, double *,
            const integer *);

static int blas(void) {
  const integer n = 2, one = 1;
  const double a[] = {1, 2, 3, 4}, unit = 1, zero = 0;
  double c[4];
  dgemm_("N", "N", &n, &n, &n, &unit, a, &n, a, &n, &zero, c, &n);
  return c[0] == 7 && c[1] == 10 && c[2] == 15 && c[3] == 22 && ddot_(&n, a, &one, a, &one) == 5 ? 0 : 1;
}
#endif

#ifdef LAPACK
void dgesv_(const integer *, const integer *, double *, const integer *, integer *, double *, const integer *,
            integer *);

static int lapack(void) {
  const integer n = 2, one = 1;
  integer pivots[2], info = -1;
  double a[] = {2, 0, 0, 4}, b[] = {1, 1};
  dgesv_(&n, &one, a, &n, pivots, b, &n, &info);
  return info == 0 && b[0] == 0.5 && b[1] == 0.25 ? 0 : 2;
}
#endif

#ifdef OWN_SGEMM /* of 8-byte reals, as in a program that is compiled with -r8 */
void sgemm_(const char *a, const char *b, const int *m, const int *n, const int *k, const double *alpha,
            const double *x, const int *ldx, const double *y, const int *ldy, const double *beta, double *z,
            const int *ldz) {
  int i, j, l;
  if (*a != 'N' || *b != 'N') return;
  for (j = 0; j < *n; ++j)
    for (i = 0; i < *m; ++i) {
      double sum = 0;
      for (l = 0; l < *k; ++l) sum += x[i + l * *ldx] * y[l + j * *ldy];
      z[i + j * *ldz] = *alpha * sum + *beta * z[i + j * *ldz];
    }
}
#endif

#ifdef NETCDF
int nc_create(const char *, int, int *), nc_def_dim(int, const char *, size_t, int *),
    nc_open(const char *, int, int *), nc_def_var(int, const char *, int, int, const int *, int *), nc_enddef(int),
    nc_close(int), nc_put_var_double(int, int, const double *), nc_get_var_double(int, int, double *);

static int netcdf(void) {
  const double written[] = {1.5, 2.5};
  double found[2] = {0};
  int file, axis, variable, wrong = 0;
  wrong |= nc_create("own.nc", 0x1000 /* NC_NETCDF4 */, &file) || nc_def_dim(file, "x", 2, &axis);
  wrong |= nc_def_var(file, "v", 6 /* NC_DOUBLE */, 1, &axis, &variable) || nc_enddef(file);
  wrong |= nc_put_var_double(file, variable, written) || nc_close(file);
  wrong |= nc_open("own.nc", 0, &file) || nc_get_var_double(file, 0, found) || nc_close(file);
  return wrong || found[0] != 1.5 || found[1] != 2.5 ? 4 : 0;
}
#endif

#ifdef HDF5
int H5open(void);
int64_t H5Fcreate(const char *, unsigned, int64_t, int64_t);
int H5Fclose(int64_t);

static int hdf5(void) {
  int64_t file;
  if (H5open() < 0) return 8;
  file = H5Fcreate("own.h5", 2 /* H5F_ACC_TRUNC */, 0, 0);
  return file < 0 || H5Fclose(file) < 0 ? 8 : 0;
}
#endif

int own_work(void) {
  int wrong = 0;
#ifdef BLAS_INTEGER
  wrong |= blas();
#endif
#ifdef LAPACK
  wrong |= lapack();
#endif
#ifdef NETCDF
  wrong |= netcdf();
#endif
#ifdef HDF5
  wrong |= hdf5();
#endif
  return wrong;
}
