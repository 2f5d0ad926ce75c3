// SPDX-License-Identifier: MIT
/// SGD, Adam and AdamW as torch.optim defines them, through the fused kernels of torch.
#pragma once

#include "direct/optimizer_settings.hpp"
#include "plugin/torch.hpp"

namespace fpt::direct {

/// What an optimizer keeps of one parameter. Undefined tensors: there has been no step, or this optimizer has no such
/// thing.
struct Moments {
  std::string name;  ///< of the parameter in the model
  at::Tensor parameter;
  at::Tensor first;    ///< momentum_buffer of SGD, exp_avg of Adam
  at::Tensor second;   ///< exp_avg_sq
  at::Tensor largest;  ///< max_exp_avg_sq
  double steps = 0;
};

class Optimizer {
 public:
  /// For the parameters of a model that require a gradient; FPT_ERR_ARGUMENT if there are none.
  Optimizer(const OptimizerSettings& settings, const torch::jit::Module& module, const std::string& file);
  /// For parameters that have made no step.
  Optimizer(const OptimizerSettings& settings, std::vector<Moments> parameters)
      : settings_(settings), moments_(std::move(parameters)) {}

  OptimizerSettings& settings() noexcept { return settings_; }
  const OptimizerSettings& settings() const noexcept { return settings_; }
  std::vector<Moments>& moments() noexcept { return moments_; }
  const std::vector<Moments>& moments() const noexcept { return moments_; }
  /// Forget the gradients of the step before.
  void clear_gradients();
  /// One step with the gradients that the parameters hold. Those that the model did not use have none, and stay.
  void step();

 private:
  struct Batch;
  void step_sgd(Batch& batch, bool first);
  void step_adam(Batch& batch);
  void prepare(Moments& moments) const;

  OptimizerSettings settings_;
  std::vector<Moments> moments_;
};

}  // namespace fpt::direct
