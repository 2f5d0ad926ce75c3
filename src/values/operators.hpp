// SPDX-License-Identifier: MIT
/// Operators and assignment of torch_tensor.
#pragma once

#include <cstdint>

#include "values/tensor.hpp"

namespace fpt {

/// The result of an operator as Python computes it, with the axes of its operands. With the interpreter lock.
/// @param operation  FPT_ADD, ...
/// @param left       a tensor, or null for `scalar`
/// @param right      a tensor, or null for `scalar`
/// FPT_ERR_PYTHON with the shapes of both operands.
TensorPtr operate(int32_t operation, const TensorPtr& left, const TensorPtr& right, const fpt_arg* scalar);

/// left = right: into memory of the caller the values are written, else `left` becomes another name of what `right`
/// names, in the innermost scope. FPT_ERR_SHAPE, FPT_ERR_DTYPE, and FPT_ERR_PYTHON for what torch refuses.
void assign_tensor(int64_t* left, int64_t right);

}  // namespace fpt
