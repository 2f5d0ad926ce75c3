// SPDX-License-Identifier: MIT
#include "direct/optimizer_settings.hpp"

#include <algorithm>
#include <iterator>

#include "arrays/copy.hpp"
#include "arrays/scalar.hpp"
#include "base/error.hpp"
#include "direct/object_arguments.hpp"

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

struct Kind {
  std::string_view name;
  const char* class_name;
};

constexpr Kind kinds[] = {{"sgd", "SGD"}, {"adam", "Adam"}, {"adamw", "AdamW"}};

template <class Name>
std::optional<int32_t> kind_called(std::string_view wanted, Name Kind::* name) noexcept {
  for (const Kind& kind : kinds)
    if (kind.*name == wanted) return static_cast<int32_t>(&kind - kinds);
  return std::nullopt;
}

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

/// What has no name is the learning rate.
void change_settings(OptimizerSettings& chosen, Args settings) {
  const std::string_view name = kinds[chosen.kind].name;
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

}  // namespace

std::optional<int32_t> kind_of_optimizer(std::string_view name) noexcept { return kind_called(name, &Kind::name); }

std::optional<int32_t> kind_of_class(std::string_view name) noexcept { return kind_called(name, &Kind::class_name); }

const char* class_name(int32_t kind) noexcept { return kinds[kind].class_name; }

OptimizerSettings default_settings(int32_t kind) noexcept {
  return {kind, 0, 0, -1, 0, kind == 2 ? 1e-2 : 0, 0.9, 0.999, 1e-8, 0};
}

OptimizerSettings optimizer_settings(std::string_view name, Args settings) {
  const std::optional<int32_t> kind = kind_of_optimizer(name);
  if (!kind) fail(FPT_ERR_HOOK, "there is no optimizer ", name, "; there are sgd, adam, adamw");
  OptimizerSettings chosen = default_settings(*kind);
  change_settings(chosen, settings);
  if (chosen.lr < 0) fail(FPT_ERR_SIGNATURE, "create_optimizer_", name, " needs a learning rate, lr");
  return chosen;
}

double* real_setting(OptimizerSettings& settings, std::string_view name) noexcept {
  const Setting* setting = find_setting(name, settings.kind);
  return setting && setting->real ? &(settings.*setting->real) : nullptr;
}

void change_options(OptimizerSettings& settings, Args options) {
  std::vector<fpt_arg> plain;
  for (const fpt_arg& arg : options) {
    const std::string_view name = arg.name;
    if (name == "beta1" || name == "beta2") fail(FPT_ERR_SIGNATURE, "torch.optim has no option ", name);
    if (name != "betas") {
      plain.push_back(arg);
      continue;
    }
    const bool is_pair = !is_value(arg) && arg.handle == 0 && arg.rank == 1 && arg.u.array.extents[0] == 2;
    if (!is_pair || !is_real(arg.dtype) || is_half(arg.dtype)) fail(FPT_ERR_SIGNATURE, "betas are no two numbers");
    double betas[2];
    copy(array_of(arg), row_of(betas, FPT_FLOAT64, 2));
    plain.push_back(real_argument(betas[0], "beta1"));
    plain.push_back(real_argument(betas[1], "beta2"));
  }
  change_settings(settings, plain);
}

void NamedSettings::append_to(std::vector<fpt_arg>& given) {
  for (const char* name : {"lr", "momentum", "dampening", "weight_decay", "eps"})
    if (const double* value = real_setting(settings_, name)) given.push_back(real_argument(*value, name));
  if (settings_.kind == 0) {
    given.push_back(number_argument(settings_.nesterov != 0, FPT_BOOL, "nesterov"));
  } else {
    given.push_back(number_argument(settings_.amsgrad != 0, FPT_BOOL, "amsgrad"));
    given.push_back(row_argument(betas_, FPT_FLOAT64, 2, "betas"));
  }
}

}  // namespace fpt
