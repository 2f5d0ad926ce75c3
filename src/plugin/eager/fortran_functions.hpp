// SPDX-License-Identifier: MIT
/// Functions that are no operators of torch: those of tensors/fortran_axes.py, and some that Python puts together.
#pragma once

#include "plugin/eager/functions.hpp"

namespace fpt::direct {

/// By the name without what follows a second point, "fortran.reduce", "manual_seed"; null if there is none.
Own own_function(std::string_view name) noexcept;
/// Of torch.nn.functional.
Own own_network_function(std::string_view name) noexcept;

}  // namespace fpt::direct
