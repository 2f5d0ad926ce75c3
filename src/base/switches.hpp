// SPDX-License-Identifier: MIT
/// Variables of the environment that switch a way of doing things off, for tests and for finding faults.
#pragma once

#include <cstdlib>
#include <string_view>

namespace fpt {

/// True for a variable that is "0".
inline bool is_switched_off(const char* variable) noexcept {
  const char* value = std::getenv(variable);
  return value && std::string_view(value) == "0";
}

}  // namespace fpt
