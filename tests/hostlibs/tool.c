/* SPDX-License-Identifier: MIT */
/* Stands before other libraries, as tracers and profilers of MPI do, and tells at the end which calls it has seen. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static int reductions = 0, files_of_python = 0, files_of_hdf5 = 0;

int open(const char *path, int flags, ...) {
  static int (*next)(const char *, int, ...) = NULL;
  va_list more;
  int mode;
  va_start(more, flags);
  mode = flags & O_CREAT ? va_arg(more, int) : 0;
  va_end(more);
  if (!next) *(void **)&next = dlsym(RTLD_NEXT, "open");
  if (strstr(path, "script.h5")) ++files_of_hdf5;
  if (strstr(path, "script.txt")) ++files_of_python;
  return next(path, flags, mode);
}

int open64(const char *path, int flags, ...) {
  va_list more;
  int mode;
  va_start(more, flags);
  mode = flags & O_CREAT ? va_arg(more, int) : 0;
  va_end(more);
  return open(path, flags, mode);
}

/* Handles are numbers or addresses, of which each fits into a long. */
int MPI_Allreduce(const void *sent, void *received, int count, long type, long operation, long communicator) {
  static int (*next)(const void *, void *, int, long, long, long) = NULL;
  if (!next) *(void **)&next = dlsym(RTLD_DEFAULT, "PMPI_Allreduce");
  ++reductions;
  return next(sent, received, count, type, operation, communicator);
}

__attribute__((destructor)) static void tell(void) {
  fprintf(stderr, "tool: %d reductions, %d files of Python, %d files of HDF5\n", reductions, files_of_python,
          files_of_hdf5);
}
