// SPDX-License-Identifier: MIT
/// Compiled without contractions: Python rounds after each operation.
#include "direct/schedule.hpp"

#include <algorithm>
#include <cmath>

namespace fpt {
namespace {

constexpr double pi = 3.141592653589793;

/// gamma for each milestone that is this epoch.
std::optional<double> multi_step(const Schedule& schedule, int64_t epoch, double rate) {
  const auto passed = std::count(schedule.milestones.begin(), schedule.milestones.end(), epoch);
  if (passed == 0) return rate;
  const double factor = std::pow(schedule.gamma, static_cast<double>(passed));
  if (!std::isfinite(factor)) return std::nullopt;
  return rate * factor;
}

std::optional<double> cosine(const Schedule& schedule, int64_t epoch, double base, double rate) {
  if (epoch == 0) return rate;
  const auto period = static_cast<double>(schedule.period);
  if ((epoch - 1 - schedule.period) % (2 * schedule.period) == 0)
    return rate + (base - schedule.eta_min) * (1 - std::cos(pi / period)) / 2;
  const double before = 1 + std::cos(pi * static_cast<double>(epoch - 1) / period);
  if (before == 0) return std::nullopt;
  return (1 + std::cos(pi * static_cast<double>(epoch) / period)) / before * (rate - schedule.eta_min) +
         schedule.eta_min;
}

double linear(const Schedule& schedule, int64_t epoch, double rate) {
  if (epoch == 0) return rate * schedule.start_factor;
  if (epoch > schedule.period) return rate;
  const double rise = schedule.end_factor - schedule.start_factor;
  return rate * (1.0 + rise / (static_cast<double>(schedule.period) * schedule.start_factor +
                               static_cast<double>(epoch - 1) * rise));
}

std::optional<double> polynomial(const Schedule& schedule, int64_t epoch, double rate) {
  if (epoch == 0 || epoch > schedule.period) return rate;
  const auto period = static_cast<double>(schedule.period);
  const double factor = std::pow(
      (1.0 - static_cast<double>(epoch) / period) / (1.0 - static_cast<double>(epoch - 1) / period), schedule.power);
  if (!std::isfinite(factor)) return std::nullopt;
  return rate * factor;
}

}  // namespace

std::optional<double> next_rate(const Schedule& schedule, int64_t epoch, double base, double rate) {
  switch (schedule.kind) {
    case ScheduleKind::step:
      return epoch == 0 || epoch % schedule.period != 0 ? rate : rate * schedule.gamma;
    case ScheduleKind::multi_step:
      return multi_step(schedule, epoch, rate);
    case ScheduleKind::exponential:
      return epoch == 0 ? rate : rate * schedule.gamma;
    case ScheduleKind::cosine:
      return cosine(schedule, epoch, base, rate);
    case ScheduleKind::linear:
      return linear(schedule, epoch, rate);
    case ScheduleKind::polynomial:
      return polynomial(schedule, epoch, rate);
  }
  return std::nullopt;
}

}  // namespace fpt
