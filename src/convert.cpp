// SPDX-License-Identifier: MIT
#include "convert.hpp"

#include <cmath>
#include <complex>
#include <cstring>
#include <limits>

#include "arg.hpp"
#include "copy.hpp"
#include "error.hpp"
#include "framework.hpp"
#include "interpreter.hpp"

namespace fpt {
namespace {

template <class T>
void set_number(PreparedCopy& copy, int32_t dtype, T value) {
  std::memcpy(copy.bytes, &value, sizeof value);
  copy.source.dtype = dtype;
  copy.source.rank = 0;
  copy.is_number = true;
}

bool fits_integer(int64_t value, int32_t dtype) noexcept {
  switch (dtype) {
    case FPT_INT8:
      return value >= std::numeric_limits<int8_t>::min() && value <= std::numeric_limits<int8_t>::max();
    case FPT_INT16:
      return value >= std::numeric_limits<int16_t>::min() && value <= std::numeric_limits<int16_t>::max();
    case FPT_INT32:
      return value >= std::numeric_limits<int32_t>::min() && value <= std::numeric_limits<int32_t>::max();
    default:
      return true;
  }
}

/// A finite number stays finite.
bool fits_real(double value, int32_t dtype) noexcept {
  const bool single = dtype == FPT_FLOAT32 || dtype == FPT_COMPLEX64;
  return !single || !std::isfinite(value) || std::abs(value) <= std::numeric_limits<float>::max();
}

/// Python numbers have one width only, so width is no reason to refuse them; losing a value or a part is.
void read_number(PreparedCopy& copy, PyObject* value, const char* label) {
  const int32_t target = copy.target.dtype;
  bool fits = true, in_range = true;
  if (PyBool_Check(value)) {
    fits = is_logical(target);
    set_number<uint8_t>(copy, FPT_BOOL, value == Py_True);
  } else if (PyLong_Check(value)) {
    int overflow = 0;
    const int64_t number = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (overflow || !fits_integer(number, target))
      fail(FPT_ERR_DTYPE, label, " is an integer too large for ", dtype_fortran_name(target));
    fits = !is_logical(target);
    set_number(copy, FPT_INT64, number);
  } else if (PyFloat_Check(value)) {
    fits = is_float(target) || is_complex(target);
    set_number(copy, FPT_FLOAT64, PyFloat_AS_DOUBLE(value));
    in_range = fits_real(PyFloat_AS_DOUBLE(value), target);
  } else {
    fits = is_complex(target);
    const std::complex<double> number(PyComplex_RealAsDouble(value), PyComplex_ImagAsDouble(value));
    set_number(copy, FPT_COMPLEX128, number);
    in_range = fits_real(number.real(), target) && fits_real(number.imag(), target);
  }
  if (!fits) fail(FPT_ERR_DTYPE, label, " is a Python ", Py_TYPE(value)->tp_name, ", but the variable is ", dtype_fortran_name(target));
  if (!in_range) fail(FPT_ERR_DTYPE, label, " is a number too large for ", dtype_fortran_name(target));
  if (copy.target.rank != 0)
    fail(FPT_ERR_SHAPE, label, " is a single number, but the output is an array of shape ", shape_text(copy.target),
         ": return an array of that shape");
}

void require_type(const Array& source, const Array& target, bool cast, const char* label) {
  if (is_widening(source.dtype, target.dtype)) return;
  if (cast && is_castable(source.dtype, target.dtype)) return;
  const bool possible = is_castable(source.dtype, target.dtype);
  fail(FPT_ERR_DTYPE, label, " is ", dtype_name(source.dtype), ", but the output is ", dtype_fortran_name(target.dtype),
       possible ? ": values would lose precision or range, which happens only with cast=.true."
                : ": there is no conversion between these types; convert in the script");
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
  require_described(output, "the output");
  if (output.access != FPT_OUT)
    fail(FPT_ERR_ARGUMENT, label, " was described by torch_in or torch_copy, which cannot receive a result: use torch_out");
  PreparedCopy copy;
  if (PyUnicode_Check(value)) {
    if (output.dtype != FPT_TEXT) fail(FPT_ERR_DTYPE, label, " is a text, but the output is ", dtype_fortran_name(output.dtype));
    Py_ssize_t length = 0;
    const char* text = PyUnicode_AsUTF8AndSize(value, &length);
    if (!text) throw_python_error(label);
    if (length > output.length)
      fail(FPT_ERR_SHAPE, label, " is a text of ", length, " bytes, but the variable has room for ", output.length);
    copy.text.assign(text, static_cast<std::size_t>(length));
    copy.text_target = static_cast<char*>(output.data);
    copy.text_length = output.length;
    return copy;
  }
  if (output.dtype == FPT_TEXT)
    fail(FPT_ERR_DTYPE, label, " is of type ", Py_TYPE(value)->tp_name, ", but the output is a character variable");
  copy.target = array_of(output);

  if (PyLong_Check(value) || PyFloat_Check(value) || PyComplex_Check(value)) {
    read_number(copy, value, label);
    return copy;
  }
  View view = plain ? *plain : host_view(value, label);
  if (view.array.dtype == FPT_FLOAT16 || view.array.dtype == FPT_BFLOAT16) view = view_of(widened_half(value).get());
  copy.source = same_layout ? view.array : reversed(view.array);
  copy.keep = std::move(view.keep);
  if (!same_shape(copy.source, copy.target)) {
    const Array script_target = same_layout ? copy.target : reversed(copy.target);
    fail(FPT_ERR_SHAPE, label, " has shape ", shape_text(view.array), " in Python, but the output needs ",
         shape_text(script_target), " there (", shape_text(copy.target), " in Fortran): nothing is broadcast or squeezed");
  }
  require_type(copy.source, copy.target, cast, label);
  return copy;
}

void PreparedCopy::clone_source() {
  Array target_of_clone = source;
  set_contiguous(target_of_clone);
  Storage storage = allocate(static_cast<std::size_t>(element_count(source)) * dtype_size(source.dtype));
  target_of_clone.data = storage.get();
  copy(source, target_of_clone);
  keep = checked(PyCapsule_New(storage.get(), nullptr, [](PyObject* capsule) {
                   FreeDeleter()(PyCapsule_GetPointer(capsule, nullptr));
                 }),
                 "copying a result aside");
  storage.release();
  source = target_of_clone;
}

void PreparedCopy::run() {
  if (text_target) {
    std::memcpy(text_target, text.data(), text.size());
    std::memset(text_target + text.size(), ' ', static_cast<std::size_t>(text_length) - text.size());
    return;
  }
  if (is_number) source.data = bytes;
  const bool in_place = source.data == target.data && source.dtype == target.dtype &&
                        std::memcmp(source.strides, target.strides, sizeof source.strides) == 0;
  if (!in_place) copy(source, target);
}

}  // namespace fpt
