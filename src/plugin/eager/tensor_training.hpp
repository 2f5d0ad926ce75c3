// SPDX-License-Identifier: MIT
/// Optimizers of tensors that the program holds, as torch_optimizer makes them in Python: with the fused kernels, and a
/// loop over the tensors for plain gradient descent on few numbers.
#pragma once

#include "plugin/training/optimizer.hpp"

namespace fpt::direct {

/// Used by one thread at a time.
struct TensorTraining {
  Optimizer optimizer;
  bool is_fused;
};

/// None for tensors that only Python has something to say of: that cannot be trained, or come twice.
[[nodiscard]] std::optional<TensorTraining> make_training(const OptimizerSettings& settings,
                                                          const std::vector<at::Tensor>& tensors);
/// From the gradients that there are; false where there is none.
[[nodiscard]] bool step(TensorTraining& training);

}  // namespace fpt::direct
