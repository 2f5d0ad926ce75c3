/* SPDX-License-Identifier: MIT */
/* An HDF5 and a NetCDF of the program, which a module of Python must not be given; with MODULE, those that it brings.
 */
#ifdef MODULE
enum { whose = 2 };
#else
enum { whose = 1 };
#endif

int H5open(void) { return whose; }
int nc_open(void) { return whose; }
