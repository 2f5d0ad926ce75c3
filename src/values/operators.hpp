// SPDX-License-Identifier: MIT
/// Operators and assignment of torch_tensor as Python computes them. With the interpreter lock.
#pragma once

#include <cstdint>

#include "values/tensor.hpp"

namespace fpt {

/// See Engine::operate().
TensorPtr operate(int32_t operation, const TensorPtr& left, const TensorPtr& right, const fpt_arg* scalar);

/// See Engine::write().
void write_tensor(Tensor& target, Tensor& value);

}  // namespace fpt
