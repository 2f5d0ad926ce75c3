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

}  // namespace fpt::direct
