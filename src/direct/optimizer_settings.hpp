// SPDX-License-Identifier: MIT
/// Settings of an optimizer of a saved model or of tensors, with the rules of torch.optim. Knows nothing of Python.
#pragma once

#include <cstdint>
#include <string_view>

#include "arrays/arg.hpp"

namespace fpt {

/// Settings of an optimizer, with the meaning they have in torch.optim.
struct OptimizerSettings {
  int32_t kind;  ///< 0: SGD, 1: Adam, 2: AdamW
  int32_t nesterov, amsgrad;
  double lr, momentum, weight_decay, beta1, beta2, eps, dampening;
};

/// Settings for the optimizer called `name` ("sgd", "adam", "adamw"). FPT_ERR_HOOK for another name, FPT_ERR_SIGNATURE
/// for a setting that it does not have or that is missing, FPT_ERR_ARGUMENT for a value out of range.
OptimizerSettings optimizer_settings(std::string_view name, Args settings);

/// What torch.optim takes where nothing is given; the learning rate is -1. FPT_ERR_HOOK for another name.
OptimizerSettings default_settings(std::string_view name);

/// Change settings; FPT_ERR_SIGNATURE, FPT_ERR_ARGUMENT as above. What has no name is the learning rate.
void change_settings(OptimizerSettings& chosen, std::string_view name, Args settings);

/// The place of a setting that is a real number; null where this optimizer has none of that name.
double* real_setting(OptimizerSettings& settings, std::string_view name) noexcept;

/// True for the name of an optimizer.
bool is_optimizer(std::string_view name);

}  // namespace fpt
