// SPDX-License-Identifier: MIT
#include "arrays/scalar.hpp"

#include <cstring>
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

std::string python_text(const Scalar& value) {
  const auto text = [](auto it) {
    using Value = decltype(it);
    if constexpr (std::is_same_v<Value, bool>)
      return std::string(it ? "True" : "False");
    else if constexpr (std::is_same_v<Value, std::string_view>)
      return concat('\'', it, '\'');
    else if constexpr (std::is_same_v<Value, std::complex<double>>)
      return concat('(', it.real(), it.imag() < 0 ? "" : "+", it.imag(), "j)");
    else
      return concat(it);
  };
  return std::visit(text, value);
}

}  // namespace fpt
