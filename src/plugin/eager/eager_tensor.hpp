// SPDX-License-Identifier: MIT
/// Tensors that the program holds: memory, gradients, operators and assignment. What an operator means is what Python
/// says, in torch/_tensor.py, down to the last bit.
#pragma once

#include "plugin/tensors.hpp"

namespace fpt::direct {

using EagerTensor = std::unique_ptr<fpt_direct_tensor>;

/// Of memory, with axes in the order of torch; see fpt_direct_table::make_tensor().
[[nodiscard]] EagerTensor make_tensor(const fpt_direct_value& memory, MemoryOwner owner);

/// Number of the latest tensor on memory of the caller.
[[nodiscard]] uint64_t last_on_memory() noexcept;
/// Whether a tensor, or one that it is a view of, is on memory of the caller, and was made after that of that number.
[[nodiscard]] bool is_on_memory(const at::Tensor& tensor, uint64_t after);

/// Memory as it is now. A pending conjugation or sign is carried out: the tensor is another one of torch afterwards.
[[nodiscard]] Array memory_of(fpt_direct_tensor& tensor);

/// FPT_ERR_ARGUMENT where there is none.
[[nodiscard]] EagerTensor gradient_of(const at::Tensor& tensor);

[[nodiscard]] EagerTensor operate(int32_t operation, const fpt_direct_operand& left, const fpt_direct_operand& right,
                                  bool same_layout);

/// FPT_ERR_SHAPE, FPT_ERR_DTYPE: nothing is broadcast or converted.
void write_tensor(at::Tensor& target, const fpt_direct_operand& value, bool same_layout);

/// FPT_ERR_ARGUMENT for a view of a tensor with a graph: what is written would be no part of it.
void require_writable(const at::Tensor& tensor);
/// The graph of values that are no more there. A view keeps its own: other parts of what it shows are still there.
void end_graph(at::Tensor& tensor);
/// Its memory was written: the graph of the values before ends, and torch counts the change.
void note_write(at::Tensor& tensor);

/// Copy a tensor into another, in whose memory it may lie.
void overwrite(at::Tensor& target, const at::Tensor& value);

/// Let a tensor have the values, the graph and requires_grad of another.
void assign(at::Tensor& target, const at::Tensor& value);

/// Type and message of the exception that is handled, as Python shows them, and FPT_ERR_PYTHON; FPT_ERR_MEMORY for a
/// lack of memory.
[[noreturn]] void rethrow_as_python(const std::string& context, const std::string& end = {});

}  // namespace fpt::direct
