// SPDX-License-Identifier: MIT
/// Options of a load and settings of an optimizer for the direct path, with the rules of the Python side (options of
/// runners/base.py, torch.optim).
#pragma once

#include <string>
#include <string_view>

#include "direct/fpt_direct.h"

namespace fpt {

struct DirectOptions {
  bool same_layout = false, copies_inputs = false, cast = false;
  int32_t mode = FPT_DIRECT_CHECKED, float_dtype = FPT_NONE, flags = 0;
  std::string device;  ///< empty for the host
};

/// FPT_ERR_ARGUMENT lists what is valid.
DirectOptions direct_options(const fpt_arg* options, int32_t count);

/// Text of the option "backend"; "auto" where it is not given.
std::string backend_option(const fpt_arg* options, int32_t count);

/// Settings for the optimizer called `name` ("sgd", "adam", "adamw"). FPT_ERR_HOOK for another name, FPT_ERR_SIGNATURE for a
/// setting that it does not have or that is missing, FPT_ERR_ARGUMENT for a value out of range.
fpt_direct_optimizer direct_optimizer(std::string_view name, const fpt_arg* settings, int32_t count);

/// True for a function that every saved model has: ftn_pytorch_train and the like.
bool is_own_function(std::string_view name);

}  // namespace fpt
