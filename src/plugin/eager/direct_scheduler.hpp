// SPDX-License-Identifier: MIT
/// Schedulers of optimizers by libtorch alone.
#pragma once

#include <memory>
#include <utility>

#include "direct/schedules.hpp"
#include "plugin/eager/direct_optimizer.hpp"

namespace fpt::direct {

/// A scheduler of a DirectOptimizer, with which it becomes one of Python. It keeps the optimizer, as in torch.
class DirectScheduler final : public ForwardingRunner {
 public:
  DirectScheduler(std::shared_ptr<DirectOptimizer> optimizer, std::shared_ptr<RunningSchedule> running)
      : optimizer_(std::move(optimizer)), running_(std::move(running)) {}

  void run(const CallRequest& request) override;
  void wait() override { optimizer_->wait(); }

 protected:
  Runner& other() override {
    optimizer_->python();
    return *running_->python;
  }

 private:
  /// False, and nothing is changed, for what only Python can do.
  bool run_here(const CallRequest& request);

  const std::shared_ptr<DirectOptimizer> optimizer_;
  const std::shared_ptr<RunningSchedule> running_;
};

}  // namespace fpt::direct
