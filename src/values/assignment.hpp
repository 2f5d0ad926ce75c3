// SPDX-License-Identifier: MIT
/// What assigning to tensors means, whatever computes with them. Knows nothing of Python.
#pragma once

#include "values/torch_value.hpp"

namespace fpt {

/// Copy a tensor of the same shape, or a number, into a tensor: the values before have no graph afterwards, and the new
/// ones bring none. FPT_ERR_SHAPE; FPT_ERR_ARGUMENT for a tensor of inference mode.
void overwrite(const TensorPtr& target, const TorchValue& value);

/// Let a tensor have the values, the graph and requires_grad of another one of its layout.
void assign(const TensorPtr& target, const TensorPtr& value);

/// Write values into a tensor that is memory of the caller, and has the graph of the value from then on. FPT_ERR_SHAPE,
/// FPT_ERR_DTYPE: nothing is broadcast or converted.
void write_through(const TensorPtr& target, const TensorPtr& given);

/// FPT_ERR_ARGUMENT for an array of NumPy, and for a view of a tensor with a graph: what the core writes would be no
/// part of it.
void require_writable(const TensorPtr& target);
/// The core has written into the memory of a tensor: torch counts the change, and the graph of the values before ends.
FPT_API void note_written(const TensorPtr& target) noexcept;

/// The gradient that a tensor has now; null without one.
[[nodiscard]] TensorPtr gradient_now(const TensorPtr& tensor);
/// The same; FPT_ERR_ARGUMENT without one.
[[nodiscard]] TensorPtr present_gradient(const TensorPtr& tensor);

/// The same memory with all axes in the other order, as a tensor of a layout.
[[nodiscard]] TensorPtr reversed_view(const TensorPtr& tensor, bool same_layout);

}  // namespace fpt
