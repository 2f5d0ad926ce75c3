// SPDX-License-Identifier: MIT
/// Functions that are no operators of torch: those that Python puts together, and what a tensor has beside operators.
#pragma once

#include "plugin/eager/functions.hpp"

namespace fpt::direct {

/// By the name below torch, "manual_seed", "Tensor.backward"; null if there is none.
Own own_function(std::string_view name) noexcept;
/// Of torch.nn.functional.
Own own_network_function(std::string_view name) noexcept;

/// Compute gradients from that of a tensor, which is undefined for a tensor of one element.
void compute_gradients(const at::Tensor& tensor, const at::Tensor& gradient, bool keeps_graph);

}  // namespace fpt::direct
