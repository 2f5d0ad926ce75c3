// SPDX-License-Identifier: MIT
/// Losses as torch.nn.functional defines them, with torch's defaults.
#pragma once

#include "plugin/eager/functions.hpp"

namespace fpt::direct {

[[nodiscard]] bool is_loss(std::string_view name) noexcept;

/// The function of torch.nn.functional that objects of a class of torch.nn call, and only call; empty for another
/// class.
[[nodiscard]] std::string_view function_of_loss(std::string_view class_name) noexcept;

/// Call one. NotHere for what Python refuses or warns of.
c10::IValue network_loss(FunctionCall& call, const std::string& name);

}  // namespace fpt::direct
