// SPDX-License-Identifier: MIT
#include "direct/schedule_options.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>
#include <string_view>
#include <utility>

#include "arrays/copy.hpp"
#include "arrays/scalar.hpp"
#include "direct/object_arguments.hpp"

namespace fpt {
namespace {

/// A class of torch.optim.lr_scheduler, and the option that it cannot do without.
struct Class {
  const char *name, *needed;
};

/// In the order of the kinds.
constexpr Class classes[] = {{"StepLR", "step_size"},    {"MultiStepLR", "milestones"},
                             {"ExponentialLR", "gamma"}, {"CosineAnnealingLR", "T_max"},
                             {"LinearLR", ""},           {"PolynomialLR", ""}};
static_assert(std::size(classes) == static_cast<std::size_t>(ScheduleKind::polynomial) + 1);

/// An option of a class; the one that is neither real nor integer is a row of integers.
struct Option {
  ScheduleKind kind;
  const char* name;
  double Schedule::* real = nullptr;
  int64_t Schedule::* integer = nullptr;
};

constexpr Option options[] = {
    {ScheduleKind::step, "step_size", nullptr, &Schedule::period},
    {ScheduleKind::step, "gamma", &Schedule::gamma},
    {ScheduleKind::multi_step, "milestones"},
    {ScheduleKind::multi_step, "gamma", &Schedule::gamma},
    {ScheduleKind::exponential, "gamma", &Schedule::gamma},
    {ScheduleKind::cosine, "T_max", nullptr, &Schedule::period},
    {ScheduleKind::cosine, "eta_min", &Schedule::eta_min},
    {ScheduleKind::linear, "start_factor", &Schedule::start_factor},
    {ScheduleKind::linear, "end_factor", &Schedule::end_factor},
    {ScheduleKind::linear, "total_iters", nullptr, &Schedule::period},
    {ScheduleKind::polynomial, "total_iters", nullptr, &Schedule::period},
    {ScheduleKind::polynomial, "power", &Schedule::power},
};

constexpr int64_t longest = int64_t{1} << 53;  // a real number holds it

bool is_plain(const fpt_arg& arg) noexcept { return arg.status == FPT_OK && arg.handle == 0 && arg.access == FPT_IN; }

bool read(const fpt_arg& arg, const Option& option, Schedule& schedule) {
  if (!option.real && !option.integer) {
    const auto row = is_value(arg) ? std::nullopt : integers_of(placed_array_of(arg));
    if (row) schedule.milestones = *row;
    return row && !row->empty();
  }
  if (!is_value(arg)) return false;
  const Scalar value = scalar_of(arg);
  if (option.real) {
    const auto* real = std::get_if<double>(&value);
    if (real) schedule.*option.real = *real;
    return real && std::isfinite(*real);
  }
  const auto* integer = std::get_if<int64_t>(&value);
  if (integer) schedule.*option.integer = *integer;
  return integer && *integer >= 1 && *integer <= longest;
}

const Option* find_option(ScheduleKind kind, std::string_view name) noexcept {
  const auto* const found = std::find_if(std::begin(options), std::end(options),
                                         [&](const Option& known) { return known.kind == kind && known.name == name; });
  return found == std::end(options) ? nullptr : found;
}

}  // namespace

const char* class_of(const Schedule& schedule) noexcept { return classes[static_cast<int>(schedule.kind)].name; }

std::optional<Schedule> schedule_of(Args inputs) {
  if (inputs.count < 1 || inputs[0].dtype != FPT_TEXT || inputs[0].status != FPT_OK) return std::nullopt;
  const std::string_view name = text_of(inputs[0]);
  const auto* const known =
      std::find_if(std::begin(classes), std::end(classes), [&](const Class& each) { return each.name == name; });
  if (known == std::end(classes)) return std::nullopt;
  Schedule made;
  made.kind = static_cast<ScheduleKind>(known - classes);
  std::set<std::string> given;
  for (const fpt_arg& arg : Args{inputs.first + 1, inputs.count - 1}) {
    const Option* const option = find_option(made.kind, arg.name);
    if (!option || !is_plain(arg) || !given.emplace(arg.name).second || !read(arg, *option, made)) return std::nullopt;
  }
  const bool is_complete = !*known->needed || given.count(known->needed) == 1;
  const bool is_in_range =
      made.start_factor > 0 && made.start_factor <= 1 && made.end_factor >= 0 && made.end_factor <= 1;
  return is_complete && is_in_range ? std::optional<Schedule>(std::move(made)) : std::nullopt;
}

std::vector<fpt_arg> inputs_of(Schedule& schedule) {
  std::vector<fpt_arg> made{text_argument(class_of(schedule))};
  for (const Option& option : options) {
    if (option.kind != schedule.kind) continue;
    if (option.real)
      made.push_back(real_argument(schedule.*option.real, option.name));
    else if (option.integer)
      made.push_back(integer_argument(schedule.*option.integer, option.name));
    else
      made.push_back(row_argument(schedule.milestones.data(), FPT_INT64,
                                  static_cast<int64_t>(schedule.milestones.size()), option.name));
  }
  return made;
}

}  // namespace fpt
