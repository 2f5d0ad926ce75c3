// SPDX-License-Identifier: MIT
/// Functions that are no operators of torch: those that Python puts together, and what a tensor has beside operators.
#pragma once

#include "plugin/eager/functions.hpp"

namespace fpt::direct {

/// By the name below torch, "manual_seed", "Tensor.backward"; null if there is none.
Own own_function(std::string_view name) noexcept;
/// Of torch.nn.functional.
Own own_network_function(std::string_view name) noexcept;

}  // namespace fpt::direct
