// SPDX-License-Identifier: MIT
#include "arrays/fit.hpp"

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <type_traits>

#include "arrays/copy.hpp"
#include "base/error.hpp"

namespace fpt {
namespace {

bool fits_integer(int64_t value, int32_t dtype) noexcept {
  bool fits = true;
  with_type(dtype, [&](auto limit) {
    using Number = decltype(limit);
    if constexpr (std::is_integral_v<Number>)
      fits = value >= std::numeric_limits<Number>::min() && value <= std::numeric_limits<Number>::max();
  });
  return fits;
}

/// A finite number stays finite.
bool fits_real(double value, int32_t dtype) noexcept {
  const bool single = dtype == FPT_FLOAT32 || dtype == FPT_COMPLEX64;
  return !single || !std::isfinite(value) || std::abs(value) <= std::numeric_limits<float>::max();
}

/// Begin a copy into `output`, of which it is checked that it can receive anything.
CheckedCopy copy_into(const fpt_arg& output, const char* label) {
  require_described(output, "the output");
  if (output.access != FPT_OUT)
    fail(FPT_ERR_ARGUMENT, label,
         " was described by torch_in or torch_copy, which cannot receive a result: use torch_out");
  return {};
}

/// The target of a copy of something else than a string.
void set_variable(CheckedCopy& copy, const fpt_arg& output, const char* type, const char* label) {
  if (output.dtype == FPT_TEXT)
    fail(FPT_ERR_DTYPE, label, " is of type ", type, ", but the output is a character variable");
  copy.target = placed_array_of(output);
  if (!copy.target.device.is_host() && !is_of_tensors(copy.target.dtype))
    fail(FPT_ERR_KIND, label, " goes into ", dtype_fortran_name(output.dtype), " on ", device_name(copy.target.device),
         ", a type that torch does not have: pass a host variable");
}

void set_text(CheckedCopy& copy, std::string_view text, const fpt_arg& output, const char* label) {
  if (output.dtype != FPT_TEXT)
    fail(FPT_ERR_DTYPE, label, " is a string, but the output is ", dtype_fortran_name(output.dtype));
  if (static_cast<int64_t>(text.size()) > output.length)
    fail(FPT_ERR_SHAPE, label, " is a string of ", text.size(), " bytes, but the variable has room for ",
         output.length);
  require_host_memory(output.data);
  copy.text.assign(text);
  copy.text_target = static_cast<char*>(output.data);
  copy.text_length = output.length;
}

template <class Number>
void set_number(CheckedCopy& copy, int32_t dtype, const Number& number) noexcept {
  static_assert(sizeof number <= sizeof copy.number);
  std::memcpy(copy.number, &number, sizeof number);
  copy.source.dtype = dtype;
  copy.source.rank = 0;
  copy.is_number = true;
}

/// A narrower real number is nearly the same; an integer that does not fit would become another one.
void require_range(const Array& source, int32_t dtype, const char* label) {
  const auto count = static_cast<std::size_t>(element_count(source));
  if (dtype_facts(dtype).group != DtypeGroup::integer || !source.device.is_host() || count == 0) return;
  Array wide;
  const Storage values = packed_copy(source, FPT_INT64, wide);
  const auto* first = static_cast<const int64_t*>(wide.data);
  if (!std::all_of(first, first + count, [dtype](int64_t value) { return fits_integer(value, dtype); }))
    fail(FPT_ERR_DTYPE, label, " has an integer too large for ", dtype_fortran_name(dtype));
}

void require_type(const Array& source, const Array& target, bool cast, const char* label) {
  if (is_widening(source.dtype, target.dtype)) return;
  if (cast && is_castable(source.dtype, target.dtype)) return require_range(source, target.dtype, label);
  const bool possible = is_castable(source.dtype, target.dtype);
  fail(FPT_ERR_DTYPE, label, " is ", dtype_name(source.dtype), ", but the output is ", dtype_fortran_name(target.dtype),
       possible ? ": values would lose precision or range, which happens only with cast=.true."
                : ": there is no conversion between these types; convert in the script");
}

}  // namespace

CheckedCopy fit_scalar(const Scalar& value, const fpt_arg& output, const char* label) {
  CheckedCopy copy = copy_into(output, label);
  if (const auto* text = std::get_if<std::string_view>(&value)) {
    set_text(copy, *text, output, label);
    return copy;
  }
  set_variable(copy, output, type_name(value), label);
  const int32_t target = copy.target.dtype;
  bool fits = true, in_range = true;
  if (const auto* truth = std::get_if<bool>(&value)) {
    set_number(copy, FPT_BOOL, static_cast<uint8_t>(*truth));
    fits = is_logical(target);
  } else if (const auto* integer = std::get_if<int64_t>(&value)) {
    set_number(copy, FPT_INT64, *integer);
    fits = !is_logical(target);
    in_range = fits_integer(*integer, target);
  } else if (const auto* real = std::get_if<double>(&value)) {
    set_number(copy, FPT_FLOAT64, *real);
    // an integer that no 64 bits can hold arrives as a real number
    const bool is_huge = std::abs(*real) >= 0x1p63 && std::isfinite(*real);
    fits = is_real(target) || is_complex(target) || (is_huge && !is_logical(target));
    in_range = fits_real(*real, target) && (is_real(target) || is_complex(target));
  } else if (const auto* number = std::get_if<std::complex<double>>(&value)) {
    set_number(copy, FPT_COMPLEX128, *number);
    fits = is_complex(target);
    in_range = fits_real(number->real(), target) && fits_real(number->imag(), target);
  }
  if (!fits)
    fail(FPT_ERR_DTYPE, label, " is of type ", type_name(value), ", but the variable is ", dtype_fortran_name(target));
  if (!in_range)
    fail(FPT_ERR_DTYPE, label, " is ", copy.source.dtype == FPT_INT64 ? "an integer" : "a number", " too large for ",
         dtype_fortran_name(target));
  if (copy.target.rank != 0)
    fail(FPT_ERR_SHAPE, label, " is a single number, but the output is an array of shape ", shape_text(copy.target),
         ": return an array of that shape");
  return copy;
}

CheckedCopy fit_array(const Array& seen, const char* type, const fpt_arg& output, bool same_layout, bool cast,
                      const char* label) {
  CheckedCopy copy = copy_into(output, label);
  set_variable(copy, output, type, label);
  copy.source = same_layout ? seen : reversed(seen);
  if (!same_shape(copy.source, copy.target)) {
    if (copy.target.rank == 0)
      fail(FPT_ERR_SHAPE, label, " has shape ", shape_text(seen),
           ", but the variable is a scalar: receive an array, or return a number (x.item()) or a tensor without axes");
    const Array script_target = same_layout ? copy.target : reversed(copy.target);
    fail(FPT_ERR_SHAPE, label, " has shape ", shape_text(seen), ", but the output needs ", shape_text(script_target),
         ", which is ", shape_text(copy.target), " in Fortran: nothing is broadcast or squeezed");
  }
  require_type(copy.source, copy.target, cast, label);
  return copy;
}

bool CheckedCopy::is_in_place() const noexcept {
  return source.data == target.data && source.dtype == target.dtype &&
         std::equal(source.strides, source.strides + source.rank, target.strides);
}

bool CheckedCopy::spoils(const CheckedCopy& other) const noexcept {
  if (other.is_number || other.text_target || text_target || !overlap(other.source, target)) return false;
  return this != &other || !is_in_place();
}

void CheckedCopy::set_source_aside() {
  Array packed;
  aside = packed_copy(source, source.dtype, packed);
  source = packed;
}

void CheckedCopy::run() {
  if (text_target) {
    std::memcpy(text_target, text.data(), text.size());
    std::memset(text_target + text.size(), ' ', static_cast<std::size_t>(text_length) - text.size());
    return;
  }
  if (is_number) source.data = number;
  if (!is_in_place()) copy(source, target);
}

void run_all(std::vector<CheckedCopy>& copies) {
  for (CheckedCopy& one : copies)
    if (std::any_of(copies.begin(), copies.end(), [&](const CheckedCopy& other) { return other.spoils(one); }))
      one.set_source_aside();
  for (CheckedCopy& one : copies) one.run();
}

bool copy_plainly(const Array& source, const fpt_arg& output) {
  if (output.status != FPT_OK || output.access != FPT_OUT || output.handle != 0 || output.name[0] != '\0' ||
      source.dtype != output.dtype)
    return false;
  const Array target = array_of(output);
  if (!same_shape(source, target) || overlap(source, target) || is_device_memory(output.data)) return false;
  copy_same_type(source, target);
  return true;
}

}  // namespace fpt
