// SPDX-License-Identifier: MIT
/// Variables of the environment: what they hold, and those that switch something off.
#pragma once

#include <cstdlib>
#include <string_view>

namespace fpt {

/// As long as nobody changes it; empty for one that is not set.
inline std::string_view variable_value(const char* variable) noexcept {
  const char* value = std::getenv(variable);
  return value ? value : "";
}

/// True for a variable that is "0": it switches a way of doing things off, for tests and for finding faults.
inline bool is_switched_off(const char* variable) noexcept { return variable_value(variable) == "0"; }

}  // namespace fpt
