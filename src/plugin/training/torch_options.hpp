// SPDX-License-Identifier: MIT
/// Settings of optimizers under the names that torch.optim has for them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "direct/optimizer_settings.hpp"

namespace fpt::direct {

/// What settings call a class of torch.optim: "adam" for "Adam"; empty for other classes.
[[nodiscard]] std::string_view settings_name(std::string_view kind) noexcept;
/// The inverse. @param kind  that of settings
[[nodiscard]] const char* class_name(int32_t kind) noexcept;

/// Change settings by options, of which each has a name. Errors are those of change_settings, FPT_ERR_SIGNATURE for
/// `betas` that are no two numbers.
void change_options(OptimizerSettings& settings, Args options);

/// All settings of an optimizer as options, valid as long as this.
class NamedSettings {
 public:
  explicit NamedSettings(const OptimizerSettings& settings) : settings_(settings) {}
  NamedSettings(const NamedSettings&) = delete;
  NamedSettings& operator=(const NamedSettings&) = delete;

  void append_to(std::vector<fpt_arg>& given);

 private:
  OptimizerSettings settings_;
  double betas_[2] = {settings_.beta1, settings_.beta2};
};

}  // namespace fpt::direct
