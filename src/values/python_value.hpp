// SPDX-License-Identifier: MIT
/// Scalars and strings as Python objects. With the interpreter lock held.
#pragma once

#include <complex>
#include <cstdint>
#include <string_view>

#include "ftn_pytorch.h"
#include "python/pyref.hpp"

namespace fpt {

/// The object of a value; none with an exception of Python.
struct ToPython {
  Ref operator()(bool value) const { return Ref(PyBool_FromLong(value)); }
  Ref operator()(int64_t value) const { return Ref(PyLong_FromLongLong(value)); }
  Ref operator()(double value) const { return Ref(PyFloat_FromDouble(value)); }
  Ref operator()(std::complex<double> value) const { return Ref(PyComplex_FromDoubles(value.real(), value.imag())); }
  Ref operator()(std::string_view value) const {
    return Ref(PyUnicode_DecodeUTF8(value.data(), static_cast<Py_ssize_t>(value.size()), "replace"));
  }
};

/// A scalar or string that an argument holds (is_value), as bool, int, float, complex or str. FPT_ERR_FREED for a
/// string that is not kept any more.
Ref python_value(const fpt_arg& arg);

}  // namespace fpt
