// SPDX-License-Identifier: MIT
/// Learning rates as schedulers of torch.optim.lr_scheduler compute them, to the last bit. Knows nothing of Python.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace fpt {

enum class ScheduleKind { step, multi_step, exponential, cosine, linear, polynomial };

/// A scheduler with its options, and what they are where nothing is given.
struct Schedule {
  ScheduleKind kind = ScheduleKind::step;
  int64_t period = 5;  ///< step_size, T_max or total_iters; at least 1
  double gamma = 0.1;
  double eta_min = 0;
  double start_factor = 1.0 / 3, end_factor = 1;
  double power = 1;
  std::vector<int64_t> milestones;
};

/// The learning rate of an epoch, of which 0 is that of creation: the forms of torch that go on from the rate before.
///
/// @param base  the rate when the first scheduler of the optimizer was made
/// @param rate  of the optimizer now
/// None where Python raises an exception.
std::optional<double> next_rate(const Schedule& schedule, int64_t epoch, double base, double rate);

}  // namespace fpt
