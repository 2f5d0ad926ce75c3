// SPDX-License-Identifier: MIT
#include "script/convert.hpp"

#include "arrays/arg.hpp"
#include "base/error.hpp"
#include "torch/framework.hpp"
#include "python/interpreter.hpp"

namespace fpt {
namespace {

/// A Python number as one of the four types that fit_number() knows.
void fit_python_number(PreparedCopy& copy, PyObject* value, const char* label) {
  const std::string type = concat("Python ", Py_TYPE(value)->tp_name);
  if (PyBool_Check(value)) {
    const uint8_t number = value == Py_True;
    fit_number(copy, FPT_BOOL, &number, type.c_str(), label);
  } else if (PyLong_Check(value)) {
    int overflow = 0;
    const int64_t number = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (overflow) fail(FPT_ERR_DTYPE, label, " is an integer too large for ", dtype_fortran_name(copy.target.dtype));
    fit_number(copy, FPT_INT64, &number, type.c_str(), label);
  } else if (PyFloat_Check(value)) {
    const double number = PyFloat_AS_DOUBLE(value);
    fit_number(copy, FPT_FLOAT64, &number, type.c_str(), label);
  } else {
    const double number[2] = {PyComplex_RealAsDouble(value), PyComplex_ImagAsDouble(value)};
    fit_number(copy, FPT_COMPLEX128, number, type.c_str(), label);
  }
}

/// Half precision has no type in Fortran, and torch and NumPy know how to widen it.
Ref widened_half(PyObject* value) {
  return checked(is_tensor(value) ? PyObject_CallMethod(value, "float", nullptr)
                                  : PyObject_CallMethod(value, "astype", "s", "float32"),
                 "widening a result of half precision");
}

View host_view(PyObject* value, const char* label) {
  View view = view_of(value);
  if (view.array.on_host) return view;
  return view_of(checked(PyObject_CallFunctionObjArgs(embed("to_host"), value, nullptr), label).get());
}

}  // namespace

PreparedCopy prepare_copy(PyObject* value, const View* plain, const fpt_arg& output, bool same_layout, bool cast,
                          const char* label) {
  PreparedCopy copy{copy_into(output, label), {}};
  if (PyUnicode_Check(value)) {
    Py_ssize_t length = 0;
    const char* text = PyUnicode_AsUTF8AndSize(value, &length);
    if (!text) throw_python_error(label);
    fit_text(copy, {text, static_cast<std::size_t>(length)}, output, label);
    return copy;
  }
  fit_variable(copy, output, Py_TYPE(value)->tp_name, label);
  if (PyLong_Check(value) || PyFloat_Check(value) || PyComplex_Check(value)) {
    fit_python_number(copy, value, label);
    return copy;
  }
  View view = plain ? *plain : host_view(value, label);
  if (view.array.dtype == FPT_FLOAT16 || view.array.dtype == FPT_BFLOAT16) view = view_of(widened_half(value).get());
  fit_array(copy, view.array, same_layout, cast, label);
  copy.keep = std::move(view.keep);
  return copy;
}

void PreparedCopy::clone_source() {
  Storage storage = set_source_aside();
  keep = checked(PyCapsule_New(storage.get(), nullptr, [](PyObject* capsule) {
                   FreeDeleter()(PyCapsule_GetPointer(capsule, nullptr));
                 }),
                 "copying a result aside");
  storage.release();
}

}  // namespace fpt
