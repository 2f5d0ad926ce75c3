// SPDX-License-Identifier: MIT
#include "direct/schedules.hpp"

#include <algorithm>
#include <atomic>
#include <utility>

#include "base/error.hpp"
#include "base/rank.hpp"
#include "direct/object_arguments.hpp"
#include "direct/schedule_options.hpp"

namespace fpt {
namespace {

/// Once in a process, as Python does.
void warn_of_order(const Schedule& schedule) {
  static std::atomic<bool> is_told{false};
  if (!is_told.exchange(true))
    warn_of_job(concat("a step of the scheduler ", class_of(schedule),
                       " came before any step of its optimizer, so no step is made with the first learning rate: call "
                       "step of the optimizer first"));
}

}  // namespace

std::shared_ptr<RunningSchedule> Schedules::add(Schedule schedule, double& rate) {
  const double first = first_rate_.value_or(rate);
  const std::optional<double> next = next_rate(schedule, 0, first, rate);
  if (!next) return nullptr;
  auto made = std::make_shared<RunningSchedule>(RunningSchedule{std::move(schedule), first, 1, *next, nullptr});
  const auto has_ended = [](const std::weak_ptr<RunningSchedule>& each) { return each.expired(); };
  running_.erase(std::remove_if(running_.begin(), running_.end(), has_ended), running_.end());
  running_.push_back(made);
  first_rate_ = first;
  rate = *next;
  return made;
}

bool Schedules::step(RunningSchedule& running, double& rate) const {
  const std::optional<double> next = next_rate(running.schedule, running.steps, running.base, rate);
  if (!next) return false;
  if (running.steps == 1 && !is_stepped_) warn_of_order(running.schedule);
  ++running.steps;
  rate = running.rate = *next;
  return true;
}

void Schedules::hand_over(Runner& optimizer) {
  if (!first_rate_) return;
  std::vector<fpt_arg> rates{real_argument(*first_rate_), number_argument(is_stepped_, FPT_BOOL)};
  optimizer.run({"take_rates", rates});
  for (const std::weak_ptr<RunningSchedule>& each : running_) {
    const std::shared_ptr<RunningSchedule> running = each.lock();
    if (!running) continue;
    std::vector<fpt_arg> inputs = inputs_of(running->schedule);
    running->python = create(optimizer, "scheduler", inputs);
    std::vector<fpt_arg> state{integer_argument(running->steps), real_argument(running->rate)};
    running->python->run({"take_state", state});
  }
}

}  // namespace fpt
