// SPDX-License-Identifier: MIT
/// Element types and devices by the names that Python has for them.
#pragma once

#include "plugin/torch.hpp"

namespace fpt::direct {

/// Of "float64" or "torch.float64"; NotHere for another name.
[[nodiscard]] at::ScalarType dtype_named(std::string_view name);

/// Of "cuda:1"; NotHere for another name.
[[nodiscard]] at::Device device_named(const std::string& name);

}  // namespace fpt::direct
