// SPDX-License-Identifier: MIT
// What no library of this kind can avoid, measured in the process and beside the calls it is compared with.
#include <Python.h>

#include <chrono>
#include <cstdint>
#include <string>

#include "torch/dlpack.hpp"

using fpt::dlpack::ExchangeApi;
using fpt::dlpack::ManagedVersioned;

namespace {

double nanoseconds_per_call(std::chrono::steady_clock::time_point start, int32_t calls) {
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count() / calls;
}

}  // namespace

extern "C" {

/// Nanoseconds for taking the interpreter lock, calling the script function empty<n> with n arguments and releasing the
/// lock; negative on failure.
double floor_of_call(int32_t n, int32_t calls) {
  const PyGILState_STATE gil = PyGILState_Ensure();
  PyObject* module = PyImport_ImportModule("functions");
  PyObject* function = module ? PyObject_GetAttrString(module, ("empty" + std::to_string(n)).c_str()) : nullptr;
  Py_XDECREF(module);
  double result = -1;
  if (function) {
    PyObject* arguments[9] = {nullptr, Py_None, Py_None, Py_None, Py_None, Py_None, Py_None, Py_None, Py_None};
    const std::size_t count = static_cast<std::size_t>(n) | PY_VECTORCALL_ARGUMENTS_OFFSET;
    PyThreadState* state = PyEval_SaveThread();
    const auto start = std::chrono::steady_clock::now();
    for (int32_t i = 0; i < calls; ++i) {
      PyEval_RestoreThread(state);
      Py_XDECREF(PyObject_Vectorcall(function, arguments + 1, count, nullptr));
      PyEval_SaveThread();
    }
    result = nanoseconds_per_call(start, calls);
    PyEval_RestoreThread(state);
    Py_DECREF(function);
  }
  PyErr_Clear();
  PyGILState_Release(gil);
  return result;
}

/// Nanoseconds torch takes to make a tensor of memory and to destroy it; negative without the exchange API of DLPack.
double floor_of_tensor(int32_t calls) {
  static double memory[64 * 32];
  static int64_t shape[] = {32, 64}, strides[] = {64, 1};
  const PyGILState_STATE gil = PyGILState_Ensure();
  PyObject* torch = PyImport_ImportModule("torch");
  PyObject* type = torch ? PyObject_GetAttrString(torch, "Tensor") : nullptr;
  PyObject* capsule = type ? PyObject_GetAttrString(type, "__dlpack_c_exchange_api__") : nullptr;
  auto* api = static_cast<ExchangeApi*>(capsule ? PyCapsule_GetPointer(capsule, "dlpack_exchange_api") : nullptr);
  double result = -1;
  if (api) {
    ManagedVersioned managed{
        {1, 0}, nullptr, [](ManagedVersioned*) {}, 0, {memory, {1, 0}, 2, {2, 64, 1}, shape, strides, 0}};
    const auto start = std::chrono::steady_clock::now();
    for (int32_t i = 0; i < calls; ++i) {
      void* tensor = nullptr;
      if (api->to_py_object(&managed, &tensor) == 0) Py_DECREF(static_cast<PyObject*>(tensor));
    }
    result = nanoseconds_per_call(start, calls);
  }
  PyErr_Clear();
  Py_XDECREF(capsule);
  Py_XDECREF(type);
  Py_XDECREF(torch);
  PyGILState_Release(gil);
  return result;
}

}  // extern "C"
