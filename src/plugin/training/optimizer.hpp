// SPDX-License-Identifier: MIT
/// SGD, Adam and AdamW as torch.optim defines them, of tensors of the program and of TorchScript models: through the
/// fused kernels of torch, and by a loop over the tensors for plain gradient descent on few numbers.
#pragma once

#include "direct/optimizer_settings.hpp"
#include "plugin/model.hpp"

namespace fpt::direct {

/// What an optimizer keeps of one parameter. Undefined tensors: there has been no step, or this optimizer has no such
/// thing.
struct Moments {
  std::string name;  ///< of the parameter in a model
  at::Tensor parameter;
  at::Tensor first{};    ///< momentum_buffer of SGD, exp_avg of Adam
  at::Tensor second{};   ///< exp_avg_sq
  at::Tensor largest{};  ///< max_exp_avg_sq
  double steps = 0;      ///< not counted in plain gradient descent, which keeps nothing
};

/// Used by one thread at a time.
class Optimizer {
 public:
  /// Names may be empty.
  FPT_API Optimizer(const OptimizerSettings& settings, const std::vector<NamedTensor>& parameters);

  OptimizerSettings& settings() noexcept { return settings_; }
  const OptimizerSettings& settings() const noexcept { return settings_; }
  std::vector<Moments>& moments() noexcept { return moments_; }
  const std::vector<Moments>& moments() const noexcept { return moments_; }
  /// Forget the gradients of the step before.
  FPT_API void clear_gradients();
  /// One step with the gradients that there are. Parameters without one stay; false where none has one.
  FPT_API bool step();

 private:
  struct Batch;
  void step_fused();
  void step_plainly();
  void step_sgd(Batch& batch, bool first);
  void step_adam(Batch& batch);
  void prepare(Moments& moments) const;

  OptimizerSettings settings_;
  std::vector<Moments> moments_;
  bool is_fused_;
};

}  // namespace fpt::direct
