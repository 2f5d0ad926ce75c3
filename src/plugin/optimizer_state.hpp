// SPDX-License-Identifier: MIT
/// The state of an optimizer as an extra file of a TorchScript archive, which the Python runner reads and writes as
/// well (runners/models/optimizer_state.py).
///
/// A text of lines, then the bytes of the tensors one after the other, contiguous and little-endian. Real numbers are
/// hexadecimal, so that nothing is rounded:
///
///     ftn_pytorch optimizer 1
///     kind adam
///     lr 0x1.0624dd2f1a9fcp-10
///     (momentum, weight_decay, beta1, beta2, eps, nesterov, amsgrad likewise)
///     parameter 0.weight 25
///     first float32 64,16
///     second float32 64,16
///     end
///
/// A line "parameter" has the name in the model and the number of steps; the lines that follow are its tensors: "first"
/// is momentum_buffer or exp_avg of torch.optim, "second" exp_avg_sq, "largest" max_exp_avg_sq.
#pragma once

#include "plugin/optimizer.hpp"

namespace fpt::direct {

constexpr const char* optimizer_file = "ftn_pytorch_optimizer";

std::string text_of_state(const Optimizer& optimizer);

/// An optimizer for a model with the state of a file. FPT_ERR_FORMAT where the text is damaged or of another model.
std::unique_ptr<Optimizer> optimizer_of_state(const std::string& text, const torch::jit::Module& module,
                                              const std::string& file);

}  // namespace fpt::direct
