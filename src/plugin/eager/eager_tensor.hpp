// SPDX-License-Identifier: MIT
/// Operators of tensors. What an operator means is what Python says, in torch/_tensor.py, down to the last bit.
#pragma once

#include <string>

#include "plugin/torch.hpp"

namespace fpt::direct {

/// The result of FPT_ADD to FPT_MATMUL.
[[nodiscard]] at::Tensor computed(int32_t operation, const at::Tensor& left, const at::Tensor& right);
/// The same with a scalar, which stays one where Python has a form of the operator for it.
[[nodiscard]] at::Tensor computed(int32_t operation, const at::Tensor& left, const at::Scalar& right);
/// What the methods for operands on the right do: __radd__, __rsub__, ...
[[nodiscard]] at::Tensor computed_from_right(int32_t operation, const at::Scalar& left, const at::Tensor& right);

/// Type and message of the exception that is handled, as Python shows them, and FPT_ERR_PYTHON; FPT_ERR_MEMORY for a
/// lack of memory. `context` opens the text unless it is empty.
[[noreturn]] void rethrow_as_python(const std::string& context = {}, const std::string& end = {});

}  // namespace fpt::direct
