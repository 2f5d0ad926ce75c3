// SPDX-License-Identifier: MIT
/// Operators of torch_tensor. Knows nothing of Python.
#pragma once

#include <cstdint>

#include "values/tensor.hpp"

namespace fpt {

/// The result of an operator, with the axes of its operands. What it means is what Python says; matmul is the product
/// of the matrices that Fortran sees.
/// @param operation    FPT_ADD, ...
/// @param left, right  a tensor, or null for `scalar`
/// FPT_ERR_ARGUMENT, FPT_ERR_PYTHON with both operands.
[[nodiscard]] TensorPtr operate(int32_t operation, TensorPtr left, TensorPtr right, const fpt_arg* scalar);

}  // namespace fpt
