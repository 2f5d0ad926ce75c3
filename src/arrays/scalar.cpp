// SPDX-License-Identifier: MIT
#include "arrays/scalar.hpp"

#include <charconv>
#include <cmath>
#include <cstring>
#include <iterator>
#include <type_traits>

#include "arrays/arg.hpp"
#include "arrays/dtype.hpp"
#include "base/error.hpp"

namespace fpt {

Scalar scalar_of(const fpt_arg& arg) {
  if (arg.dtype == FPT_TEXT) return text_of(arg);
  Scalar value;
  const bool known = with_type(arg.dtype, [&](auto number) {
    using Number = decltype(number);
    std::memcpy(&number, arg.u.value, sizeof number);
    if (is_logical(arg.dtype))
      value = arg.u.value[0] != 0;
    else if constexpr (std::is_integral_v<Number>)
      value = static_cast<int64_t>(number);
    else if constexpr (std::is_floating_point_v<Number>)
      value = static_cast<double>(number);
    else
      value = std::complex<double>(number);
  });
  if (!known) fail(FPT_ERR_INTERNAL, "scalar of type ", arg.dtype);
  return value;
}

const char* type_name(const Scalar& value) noexcept {
  constexpr const char* names[] = {"bool", "int", "float", "complex", "str"};
  return names[value.index()];
}

namespace {

/// As Python's repr; whole numbers have no ".0" within complex ones.
std::string python_text(double value, bool is_part) {
  char text[32];
  char* end = std::to_chars(text, std::end(text), value, std::chars_format::scientific).ptr;
  const std::string_view scientific(text, static_cast<std::size_t>(end - text));
  const std::size_t mark = scientific.find('e');
  if (mark == std::string_view::npos) return std::string(scientific);  // "inf", "nan"
  int exponent = 0;
  const char* digits = text + mark + (scientific[mark + 1] == '+' ? 2 : 1);
  std::from_chars(digits, end, exponent);
  if (exponent < -4 || exponent >= 16) return std::string(scientific);
  end = std::to_chars(text, std::end(text), value, std::chars_format::fixed).ptr;
  std::string fixed(text, end);
  return fixed.find('.') == std::string::npos && !is_part ? fixed + ".0" : fixed;
}

std::string python_text(std::complex<double> value) {
  std::string imaginary = python_text(value.imag(), true) + 'j';
  if (value.real() == 0 && !std::signbit(value.real())) return imaginary;
  return concat('(', python_text(value.real(), true), imaginary[0] == '-' ? "" : "+", imaginary, ')');
}

}  // namespace

std::string python_text(const Scalar& value) {
  const auto text = [](auto it) {
    using Value = decltype(it);
    if constexpr (std::is_same_v<Value, bool>)
      return std::string(it ? "True" : "False");
    else if constexpr (std::is_same_v<Value, std::string_view>)
      return concat('\'', it, '\'');
    else if constexpr (std::is_same_v<Value, std::complex<double>>)
      return python_text(it);
    else if constexpr (std::is_same_v<Value, double>)
      return python_text(it, false);
    else
      return concat(it);
  };
  return std::visit(text, value);
}

}  // namespace fpt
