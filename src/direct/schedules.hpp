// SPDX-License-Identifier: MIT
/// The schedules of one optimizer, which change its learning rate until they are taken over by Python. Knows nothing of
/// Python.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "calls/runner.hpp"
#include "direct/schedule.hpp"

namespace fpt {

/// What a scheduler of torch keeps.
struct RunningSchedule {
  Schedule schedule;
  double base;                     ///< the rate when the first one of the optimizer was made
  int64_t steps;                   ///< with that of creation: the epoch is one less
  double rate;                     ///< after the last of them
  std::unique_ptr<Runner> python;  ///< the scheduler of Python that has taken over
};

/// Used by one thread at a time: under the lock of the optimizer.
class FPT_API Schedules {
 public:
  /// One more, which makes its first step. Null, and nothing is changed, where Python has something to say of that.
  /// It lives as long as the scheduler that gets it.
  /// @param rate  of the optimizer
  std::shared_ptr<RunningSchedule> add(Schedule schedule, double& rate);
  /// The next rate; false, and nothing is changed, where Python has something to say of it.
  bool step(RunningSchedule& running, double& rate) const;
  /// The optimizer has made a step.
  void optimizer_stepped() noexcept { is_stepped_ = is_stepped_ || first_rate_; }
  /// Give an optimizer of Python the same schedules. Its learning rate is any afterwards.
  void hand_over(Runner& optimizer);

 private:
  std::vector<std::weak_ptr<RunningSchedule>> running_;  ///< in the order in which they were made
  std::optional<double> first_rate_;                     ///< when the first one was made
  bool is_stepped_ = false;                              ///< since then
};

}  // namespace fpt
