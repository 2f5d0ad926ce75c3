// SPDX-License-Identifier: MIT
#include "direct/optimizer_settings.hpp"

#include <algorithm>
#include <iterator>

#include "arrays/scalar.hpp"
#include "base/error.hpp"

namespace fpt {
namespace {

/// A setting of an optimizer, the optimizers that have it (a bit each), and the smallest and largest value.
struct Setting {
  const char* name;
  int kinds;
  double lowest, highest;
  double OptimizerSettings::* real;
  int32_t OptimizerSettings::* logical;
};

constexpr double unlimited = 1e300;
constexpr Setting known_settings[] = {
    {"lr", 7, 0, unlimited, &OptimizerSettings::lr, nullptr},
    {"momentum", 1, 0, unlimited, &OptimizerSettings::momentum, nullptr},
    {"dampening", 1, -unlimited, unlimited, &OptimizerSettings::dampening, nullptr},
    {"nesterov", 1, 0, 1, nullptr, &OptimizerSettings::nesterov},
    {"weight_decay", 7, 0, unlimited, &OptimizerSettings::weight_decay, nullptr},
    {"beta1", 6, 0, 1, &OptimizerSettings::beta1, nullptr},
    {"beta2", 6, 0, 1, &OptimizerSettings::beta2, nullptr},
    {"eps", 6, 0, unlimited, &OptimizerSettings::eps, nullptr},
    {"amsgrad", 6, 0, 1, nullptr, &OptimizerSettings::amsgrad},
};

constexpr const char* optimizers[] = {"sgd", "adam", "adamw"};

const Setting* find_setting(std::string_view name, int32_t kind) noexcept {
  const auto* found = std::find_if(std::begin(known_settings), std::end(known_settings), [&](const Setting& known) {
    return known.name == name && (known.kinds >> kind & 1);
  });
  return found == std::end(known_settings) ? nullptr : found;
}

/// Number of a setting; `whole` where it has to be an integer or a logical.
double number_of(const fpt_arg& arg, bool whole) {
  if (arg.status == FPT_OK && is_value(arg)) {
    const Scalar value = scalar_of(arg);
    if (const auto* truth = std::get_if<bool>(&value)) return *truth;
    if (const auto* integer = std::get_if<int64_t>(&value)) return static_cast<double>(*integer);
    if (const auto* real = whole ? nullptr : std::get_if<double>(&value)) return *real;
  }
  fail(FPT_ERR_ARGUMENT, arg.name[0] ? arg.name : "the learning rate", " must be a single ",
       whole ? "integer or logical" : "real number", " passed by value");
}

}  // namespace

OptimizerSettings default_settings(std::string_view name) {
  const auto kind = static_cast<int32_t>(std::find(std::begin(optimizers), std::end(optimizers), name) - optimizers);
  if (kind == static_cast<int32_t>(std::size(optimizers)))
    fail(FPT_ERR_HOOK, "there is no optimizer ", name, "; there are sgd, adam, adamw");
  return {kind, 0, 0, -1, 0, kind == 2 ? 1e-2 : 0, 0.9, 0.999, 1e-8, 0};
}

void change_settings(OptimizerSettings& chosen, std::string_view name, Args settings) {
  for (int32_t i = 0; i < settings.count; ++i) {
    const fpt_arg& arg = settings[i];
    const std::string_view given = arg.name[0] ? arg.name : i == 0 ? "lr" : "";
    const Setting* setting = find_setting(given, chosen.kind);
    if (!setting) fail(FPT_ERR_SIGNATURE, "create_optimizer_", name, " has no setting '", given, "'");
    const double value = number_of(arg, setting->logical != nullptr);
    if (!(value >= setting->lowest && value <= setting->highest) ||
        (setting->highest == 1 && setting->real && value == 1))
      fail(FPT_ERR_ARGUMENT, "create_optimizer_", name, ": ", given, " is ", value, ", it must be at least ",
           setting->lowest, setting->highest == 1 ? " and less than 1" : " and finite");
    if (setting->real)
      chosen.*setting->real = value;
    else
      chosen.*setting->logical = value != 0;
  }
  if (chosen.nesterov && (chosen.momentum <= 0 || chosen.dampening != 0))
    fail(FPT_ERR_ARGUMENT, "create_optimizer_sgd: nesterov needs a momentum greater than 0, and no dampening");
}

OptimizerSettings optimizer_settings(std::string_view name, Args settings) {
  OptimizerSettings chosen = default_settings(name);
  change_settings(chosen, name, settings);
  if (chosen.lr < 0) fail(FPT_ERR_SIGNATURE, "create_optimizer_", name, " needs a learning rate, lr");
  return chosen;
}

double* real_setting(OptimizerSettings& settings, std::string_view name) noexcept {
  const Setting* setting = find_setting(name, settings.kind);
  return setting && setting->real ? &(settings.*setting->real) : nullptr;
}

bool is_optimizer(std::string_view name) {
  return std::find(std::begin(optimizers), std::end(optimizers), name) != std::end(optimizers);
}

}  // namespace fpt
