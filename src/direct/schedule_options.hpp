// SPDX-License-Identifier: MIT
/// Schedules as a program asks for them, and as Python is asked for the same ones. Knows nothing of Python.
#pragma once

#include <optional>
#include <vector>

#include "arrays/arg.hpp"
#include "direct/schedule.hpp"

namespace fpt {

/// @param inputs  name of the class and options, as for the function `scheduler` of an optimizer of Python
/// None for what only Python can make, or has something to say of.
FPT_API std::optional<Schedule> schedule_of(Args inputs);

/// The same inputs again, with an option for all that a schedule has. Valid as long as the schedule.
std::vector<fpt_arg> inputs_of(Schedule& schedule);

/// Its class in torch.optim.lr_scheduler.
const char* class_of(const Schedule& schedule) noexcept;

}  // namespace fpt
