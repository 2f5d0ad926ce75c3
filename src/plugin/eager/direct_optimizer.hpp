// SPDX-License-Identifier: MIT
/// Optimizers of tensors by libtorch alone.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "direct/delegating_runner.hpp"
#include "direct/schedules.hpp"
#include "plugin/training/optimizer.hpp"
#include "values/tensor.hpp"

namespace fpt::direct {

/// SGD, Adam or AdamW of tensors of the program. Whatever else is asked of it than to step, to forget gradients, to
/// tell or change a setting and to make a scheduler that is known here makes an optimizer of Python of it, with the
/// same tensors, the same state and the same schedulers.
class DirectOptimizer : public DelegatingRunner, public std::enable_shared_from_this<DirectOptimizer> {
 public:
  /// @param inputs  name of the class, tensors, options, as for ftn_pytorch_optimizer of TorchFunctions
  /// Null for what only Python can make, or has something to say of.
  static std::unique_ptr<Runner> make(Args inputs);

  void run(const CallRequest& request) override;
  /// A step of a scheduler; false, and nothing is changed, where only Python can do it. Within unless_python().
  bool step(RunningSchedule& running);

 private:
  DirectOptimizer(std::string kind, std::vector<TensorPtr> tensors, const OptimizerSettings& created,
                  const std::vector<NamedTensor>& parameters)
      : kind_(std::move(kind)), tensors_(std::move(tensors)), created_(created), optimizer_(created, parameters) {}
  /// False, and nothing is changed, for what only Python can do.
  bool run_here(const CallRequest& request);
  /// False where there is no gradient.
  bool step_here();
  bool set(Args inputs);
  bool get(Args inputs, const Targets& targets);
  std::unique_ptr<Runner> make_scheduler(Args inputs);
  OptimizerSettings& settings() noexcept { return optimizer_.settings(); }
  /// The optimizer of Python, which this one becomes.
  std::unique_ptr<Runner> make_python() override;

  const std::string kind_;
  const std::vector<TensorPtr> tensors_;
  const OptimizerSettings created_;  ///< the settings at first, which groups that are added later have
  Schedules schedules_;
  Optimizer optimizer_;
};

}  // namespace fpt::direct
