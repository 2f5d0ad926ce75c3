// SPDX-License-Identifier: MIT
#include "values/python_value.hpp"

#include <complex>
#include <string_view>
#include <variant>

#include "arrays/scalar.hpp"
#include "arrays/texts.hpp"
#include "python/interpreter.hpp"

namespace fpt {
namespace {

struct ToPython {
  PyObject* operator()(bool value) const { return PyBool_FromLong(value); }
  PyObject* operator()(int64_t value) const { return PyLong_FromLongLong(value); }
  PyObject* operator()(double value) const { return PyFloat_FromDouble(value); }
  PyObject* operator()(std::complex<double> value) const { return PyComplex_FromDoubles(value.real(), value.imag()); }
  PyObject* operator()(std::string_view value) const {
    return PyUnicode_DecodeUTF8(value.data(), static_cast<Py_ssize_t>(value.size()), "replace");
  }
};

}  // namespace

Ref python_value(const fpt_arg& arg) {
  const auto owner = has_kept_text(arg) ? text_owner(arg, arg.name[0] ? arg.name : "an argument") : nullptr;
  return checked(std::visit(ToPython(), scalar_of(arg)), "passing a scalar");
}

}  // namespace fpt
