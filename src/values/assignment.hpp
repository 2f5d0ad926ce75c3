// SPDX-License-Identifier: MIT
/// What assigning to tensors means, whatever computes with them. Knows nothing of Python.
#pragma once

#include "values/tensor.hpp"

namespace fpt {

/// Whether gradients are computed on this thread.
bool gradients_are_computed();
/// Compute them, or none; what it was before.
bool exchange_gradients(bool wanted);

/// Gradients are computed, or are not, as long as this lives.
class GradientMode {
 public:
  explicit GradientMode(bool wanted) : before_(exchange_gradients(wanted)) {}
  ~GradientMode();
  GradientMode(const GradientMode&) = delete;
  GradientMode& operator=(const GradientMode&) = delete;

 private:
  const bool before_;
};

/// Copy a tensor into another one of its layout, in whose memory it may lie.
void copy_into(const TensorPtr& target, const TensorPtr& value);

/// Let a tensor have the values, the graph and requires_grad of another one of its layout.
void assign(const TensorPtr& target, const TensorPtr& value);

/// Write values into a tensor that is memory of the caller, and has the graph of the value from then on. FPT_ERR_SHAPE,
/// FPT_ERR_DTYPE: nothing is broadcast or converted.
void write_through(const TensorPtr& target, const TensorPtr& value);

/// Values that are no more there have no graph. A view keeps its own: other parts of what it shows are still there.
void end_graph(const TensorPtr& tensor);

/// FPT_ERR_ARGUMENT for an array of NumPy, and for a view of a tensor with a graph: what the core writes would be no
/// part of it.
void require_writable(const TensorPtr& target);
/// The core has written into the memory of a tensor: torch counts the change, and the graph of the values before ends.
void note_written(const TensorPtr& target) noexcept;

/// The gradient that a tensor has now; null without one.
[[nodiscard]] TensorPtr gradient_now(const TensorPtr& tensor);
/// The same; FPT_ERR_ARGUMENT without one.
[[nodiscard]] TensorPtr present_gradient(const TensorPtr& tensor);

/// The tensor in the other layout: another view of the same memory.
[[nodiscard]] TensorPtr reversed_view(const TensorPtr& tensor);

}  // namespace fpt
