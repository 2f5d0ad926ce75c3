// SPDX-License-Identifier: MIT
/// Settings of an optimizer that a saved model is trained with, with the rules of torch.optim. Knows nothing of Python.
#pragma once

#include <string_view>

#include "arrays/arg.hpp"
#include "direct/fpt_direct.h"

namespace fpt {

/// Settings for the optimizer called `name` ("sgd", "adam", "adamw"). FPT_ERR_HOOK for another name, FPT_ERR_SIGNATURE
/// for a setting that it does not have or that is missing, FPT_ERR_ARGUMENT for a value out of range.
fpt_direct_optimizer optimizer_settings(std::string_view name, Args settings);

/// What torch.optim takes where nothing is given; the learning rate is -1. FPT_ERR_HOOK for another name.
fpt_direct_optimizer default_settings(std::string_view name);

/// Change settings; FPT_ERR_SIGNATURE, FPT_ERR_ARGUMENT as above. What has no name is the learning rate.
void change_settings(fpt_direct_optimizer& chosen, std::string_view name, Args settings);

/// The place of a setting that is a real number; null where this optimizer has none of that name.
double* real_setting(fpt_direct_optimizer& settings, std::string_view name) noexcept;

/// True for the name of an optimizer.
bool is_optimizer(std::string_view name);

}  // namespace fpt
