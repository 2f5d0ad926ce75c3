// SPDX-License-Identifier: MIT
/// Settings of an optimizer of a saved model or of tensors, with the names and the rules of torch.optim. Knows nothing
/// of Python.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

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
FPT_API OptimizerSettings optimizer_settings(std::string_view name, Args settings);

/// What torch.optim takes where nothing is given; the learning rate is -1.
FPT_API OptimizerSettings default_settings(int32_t kind) noexcept;

/// The kind called "adam"; none for another name.
FPT_API std::optional<int32_t> kind_of_optimizer(std::string_view name) noexcept;

/// The kind that is the class "Adam" of torch.optim; none for another one.
FPT_API std::optional<int32_t> kind_of_class(std::string_view name) noexcept;
/// The inverse.
FPT_API const char* class_name(int32_t kind) noexcept;

/// Change settings by options of torch.optim, of which each has a name. FPT_ERR_SIGNATURE and FPT_ERR_ARGUMENT as
/// above, FPT_ERR_SIGNATURE for `betas` that are no two numbers.
FPT_API void change_options(OptimizerSettings& settings, Args options);

/// The place of a setting that is a real number; null where this optimizer has none of that name.
FPT_API double* real_setting(OptimizerSettings& settings, std::string_view name) noexcept;

/// All settings of an optimizer as such options, valid as long as this.
class FPT_API NamedSettings {
 public:
  explicit NamedSettings(const OptimizerSettings& settings) : settings_(settings) {}
  NamedSettings(const NamedSettings&) = delete;
  NamedSettings& operator=(const NamedSettings&) = delete;

  void append_to(std::vector<fpt_arg>& given);

 private:
  OptimizerSettings settings_;
  double betas_[2] = {settings_.beta1, settings_.beta2};
};

}  // namespace fpt
