// SPDX-License-Identifier: MIT
/// Scalars of arguments as those of torch.
#pragma once

#include <c10/core/Scalar.h>

#include <complex>
#include <string>

#include "arrays/scalar.hpp"
#include "plugin/torch.hpp"

namespace fpt::direct {

struct ToTorch {
  c10::IValue operator()(std::string_view value) const { return std::string(value); }
  c10::IValue operator()(std::complex<double> value) const { return c10::complex<double>(value); }
  template <class Number>
  c10::IValue operator()(Number value) const {
    return value;
  }
};

/// Of a scalar or a string.
inline c10::IValue value_of(const fpt_arg& arg) { return std::visit(ToTorch(), scalar_of(arg)); }

/// FPT_ERR_PYTHON for a string.
inline at::Scalar number_of(const fpt_arg& arg) {
  const c10::IValue value = value_of(arg);
  if (!value.isScalar()) fail(FPT_ERR_PYTHON, "TypeError: an operand of a tensor is a string");
  return value.toScalar();
}

/// As Python writes it, for messages.
inline std::string text_of(const Scalar& scalar) {
  const auto text = [](auto value) {
    using Value = decltype(value);
    if constexpr (std::is_same_v<Value, bool>)
      return std::string(value ? "True" : "False");
    else if constexpr (std::is_same_v<Value, std::string_view>)
      return concat('\'', value, '\'');
    else if constexpr (std::is_same_v<Value, std::complex<double>>)
      return concat('(', value.real(), value.imag() < 0 ? "" : "+", value.imag(), "j)");
    else
      return concat(value);
  };
  return std::visit(text, scalar);
}

}  // namespace fpt::direct
