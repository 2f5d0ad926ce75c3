// SPDX-License-Identifier: MIT
/// Losses as torch.nn.functional defines them, with torch's defaults.
#pragma once

#include "plugin/torch.hpp"

namespace fpt::direct {

[[nodiscard]] bool is_loss(std::string_view name) noexcept;

/// @param reduction  "mean", "sum", "none", "batchmean"; empty for torch's default
/// NotHere for what Python refuses or warns of.
[[nodiscard]] at::Tensor loss_named(std::string_view name, const at::Tensor& values, const at::Tensor& target,
                                    const std::string& reduction);

}  // namespace fpt::direct
