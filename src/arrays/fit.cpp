// SPDX-License-Identifier: MIT
#include "arrays/fit.hpp"

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>

#include "arrays/copy.hpp"
#include "base/error.hpp"

namespace fpt {
namespace {

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

template <class T>
T read(const unsigned char* bytes) noexcept {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

void require_type(const Array& source, const Array& target, bool cast, const char* label) {
  if (is_widening(source.dtype, target.dtype)) return;
  if (cast && is_castable(source.dtype, target.dtype)) return;
  const bool possible = is_castable(source.dtype, target.dtype);
  fail(FPT_ERR_DTYPE, label, " is ", dtype_name(source.dtype), ", but the output is ", dtype_fortran_name(target.dtype),
       possible ? ": values would lose precision or range, which happens only with cast=.true."
                : ": there is no conversion between these types; convert in the script");
}

}  // namespace

CheckedCopy copy_into(const fpt_arg& output, const char* label) {
  require_described(output, "the output");
  if (output.access != FPT_OUT)
    fail(FPT_ERR_ARGUMENT, label, " was described by torch_in or torch_copy, which cannot receive a result: use torch_out");
  return {};
}

void fit_text(CheckedCopy& copy, std::string_view text, const fpt_arg& output, const char* label) {
  if (output.dtype != FPT_TEXT) fail(FPT_ERR_DTYPE, label, " is a text, but the output is ", dtype_fortran_name(output.dtype));
  if (static_cast<int64_t>(text.size()) > output.length)
    fail(FPT_ERR_SHAPE, label, " is a text of ", text.size(), " bytes, but the variable has room for ", output.length);
  copy.text.assign(text);
  copy.text_target = static_cast<char*>(output.data);
  copy.text_length = output.length;
}

void fit_variable(CheckedCopy& copy, const fpt_arg& output, const char* type, const char* label) {
  if (output.dtype == FPT_TEXT)
    fail(FPT_ERR_DTYPE, label, " is of type ", type, ", but the output is a character variable");
  copy.target = array_of(output);
}

void fit_number(CheckedCopy& copy, int32_t dtype, const void* value, const char* type, const char* label) {
  const int32_t target = copy.target.dtype;
  std::memcpy(copy.bytes, value, dtype_size(dtype));
  copy.source.dtype = dtype;
  copy.source.rank = 0;
  copy.is_number = true;
  bool fits = true, in_range = true;
  if (dtype == FPT_BOOL) {
    fits = is_logical(target);
  } else if (dtype == FPT_INT64) {
    if (!fits_integer(read<int64_t>(copy.bytes), target))
      fail(FPT_ERR_DTYPE, label, " is an integer too large for ", dtype_fortran_name(target));
    fits = !is_logical(target);
  } else if (dtype == FPT_FLOAT64) {
    fits = is_float(target) || is_complex(target);
    in_range = fits_real(read<double>(copy.bytes), target);
  } else {
    const auto number = read<std::complex<double>>(copy.bytes);
    fits = is_complex(target);
    in_range = fits_real(number.real(), target) && fits_real(number.imag(), target);
  }
  if (!fits) fail(FPT_ERR_DTYPE, label, " is a ", type, ", but the variable is ", dtype_fortran_name(target));
  if (!in_range) fail(FPT_ERR_DTYPE, label, " is a number too large for ", dtype_fortran_name(target));
  if (copy.target.rank != 0)
    fail(FPT_ERR_SHAPE, label, " is a single number, but the output is an array of shape ", shape_text(copy.target),
         ": return an array of that shape");
}

void fit_array(CheckedCopy& copy, const Array& seen, bool same_layout, bool cast, const char* label) {
  copy.source = same_layout ? seen : reversed(seen);
  if (!same_shape(copy.source, copy.target)) {
    const Array script_target = same_layout ? copy.target : reversed(copy.target);
    fail(FPT_ERR_SHAPE, label, " has shape ", shape_text(seen), " in Python, but the output needs ",
         shape_text(script_target), " there (", shape_text(copy.target), " in Fortran): nothing is broadcast or squeezed");
  }
  require_type(copy.source, copy.target, cast, label);
}

bool CheckedCopy::is_in_place() const noexcept {
  return source.data == target.data && source.dtype == target.dtype &&
         std::equal(source.strides, source.strides + source.rank, target.strides);
}

bool CheckedCopy::spoils(const CheckedCopy& other) const noexcept {
  if (other.is_number || other.text_target || text_target || !overlap(other.source, target)) return false;
  return this != &other || !is_in_place();
}

Storage CheckedCopy::set_source_aside() {
  Array aside = source;
  set_contiguous(aside);
  Storage storage = allocate(static_cast<std::size_t>(element_count(source)) * dtype_size(source.dtype));
  aside.data = storage.get();
  copy(source, aside);
  source = aside;
  return storage;
}

void CheckedCopy::run() {
  if (text_target) {
    std::memcpy(text_target, text.data(), text.size());
    std::memset(text_target + text.size(), ' ', static_cast<std::size_t>(text_length) - text.size());
    return;
  }
  if (is_number) source.data = bytes;
  if (!is_in_place()) copy(source, target);
}

[[gnu::hot]]
bool copy_plainly(const Array& source, const fpt_arg& output) {
  if (output.status != FPT_OK || output.access != FPT_OUT || output.handle != 0 || source.dtype != output.dtype) return false;
  const Array target = array_of(output);
  if (!same_shape(source, target) || overlap(source, target)) return false;
  copy_same_type(source, target);
  return true;
}

}  // namespace fpt
