/* SPDX-License-Identifier: MIT */
/* A module of Python that brings a NetCDF and an HDF5, as wheels do. */
#include <Python.h>

int H5open(void);
int nc_open(void);

static PyObject *whose(PyObject *self, PyObject *none) {
  (void)self, (void)none;
  return Py_BuildValue("ii", H5open(), nc_open());
}

static PyMethodDef methods[] = {{"whose", whose, METH_NOARGS, "Which H5open and nc_open this module has."},
                                {NULL, NULL, 0, NULL}};
static struct PyModuleDef reader = {PyModuleDef_HEAD_INIT, "reader", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_reader(void) { return PyModule_Create(&reader); }
