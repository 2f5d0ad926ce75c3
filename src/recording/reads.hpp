// SPDX-License-Identifier: MIT
/// Attributes that a call which is recorded reads, for `recording/reads.py`.
#pragma once

#include "recording/torch.hpp"

namespace fpt::recording {

/// Give a module of Python the function `telling`.
void add_reads(pybind11::module_& module);

}  // namespace fpt::recording
