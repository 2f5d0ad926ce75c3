// SPDX-License-Identifier: MIT
/// Operators and assignment of tensors. What an operator means is what Python says, in torch/_tensor.py, down to the
/// last bit.
#pragma once

#include "plugin/tensors.hpp"

namespace fpt::direct {

/// An operand: a tensor, or a scalar where that is null.
struct Operand {
  const at::Tensor* tensor;
  const fpt_arg* scalar;
};

/// The result of FPT_ADD to FPT_MATMUL. FPT_ERR_PYTHON with both operands.
[[nodiscard]] at::Tensor operate(int32_t operation, const Operand& left, const Operand& right, bool same_layout);

/// FPT_ERR_SHAPE, FPT_ERR_DTYPE: nothing is broadcast or converted.
void write_tensor(const at::Tensor& target, const at::Tensor& given, bool same_layout);

/// FPT_ERR_ARGUMENT for a view of a tensor with a graph: what is written would be no part of it.
void require_writable(const at::Tensor& tensor);
/// The graph of values that are no more there. A view keeps its own: other parts of what it shows are still there.
void end_graph(const at::Tensor& tensor);
/// Its memory was written: the graph of the values before ends, and torch counts the change.
void note_write(const at::Tensor& tensor);

/// Copy a tensor into another, in whose memory it may lie.
void overwrite(const at::Tensor& target, const at::Tensor& value);

/// Let a tensor have the values, the graph and requires_grad of another.
void assign(const at::Tensor& target, const at::Tensor& value);

/// Type and message of the exception that is handled, as Python shows them, and FPT_ERR_PYTHON; FPT_ERR_MEMORY for a
/// lack of memory.
[[noreturn]] void rethrow_as_python(const std::string& context, const std::string& end = {});

}  // namespace fpt::direct
