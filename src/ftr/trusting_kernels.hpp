// SPDX-License-Identifier: MIT
/// Kernels of torch that take the memory behind a tensor for granted, and what is looked at before one of them runs.
#pragma once

#include <string_view>

#include "ftr/tape.hpp"

namespace ftr {

/// What to look at before a call of an operator; null for those that look themselves.
[[nodiscard]] Check check_of(std::string_view name) noexcept;

}  // namespace ftr
