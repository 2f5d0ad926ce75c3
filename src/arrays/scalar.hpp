// SPDX-License-Identifier: MIT
/// Values without memory of their own: numbers, logicals and strings that pass the boundary inside a description.
#pragma once

#include <complex>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "ftn_pytorch.h"

namespace fpt {

/// In the widest type of its group, as Python and TorchScript have it. A string is that of the description.
using Scalar = std::variant<bool, int64_t, double, std::complex<double>, std::string_view>;

/// True for an argument that is a scalar or a string by value, and no memory.
inline bool is_value(const fpt_arg& arg) noexcept {
  return arg.dtype == FPT_TEXT || (arg.rank == 0 && arg.access != FPT_OUT);
}

/// The value of such an argument, which must have been described without failure.
FPT_API Scalar scalar_of(const fpt_arg& arg);

/// None for what is no single integer.
inline std::optional<int64_t> integer_of(const fpt_arg& arg) {
  if (!is_value(arg) || arg.status != FPT_OK || arg.dtype == FPT_TEXT) return std::nullopt;
  const Scalar value = scalar_of(arg);
  const auto* integer = std::get_if<int64_t>(&value);
  return integer ? std::optional<int64_t>(*integer) : std::nullopt;
}

/// What messages call its type: "bool", "int", "float", "complex", "str".
FPT_API const char* type_name(const Scalar& value) noexcept;
/// As Python writes it, for messages.
std::string python_text(const Scalar& value);

}  // namespace fpt
