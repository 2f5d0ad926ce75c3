// SPDX-License-Identifier: MIT
/// Optimizers of tensors that the program holds, as torch_optimizer makes them in Python: with the fused kernels, and a
/// loop over the tensors for plain gradient descent on few numbers.
#pragma once

#include "plugin/training/optimizer.hpp"

struct fpt_direct_training {
  fpt::direct::Optimizer optimizer;
  bool is_fused;
};

namespace fpt::direct {

/// Null for tensors that only Python has something to say of.
[[nodiscard]] std::unique_ptr<fpt_direct_training> make_training(const fpt_direct_optimizer& settings,
                                                                 const fpt_direct_operand tensors[], int32_t count);
/// False where there is no gradient.
[[nodiscard]] bool step(fpt_direct_training& training);

}  // namespace fpt::direct
