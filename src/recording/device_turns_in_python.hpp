// SPDX-License-Identifier: MIT
/// The turns of graphs on a GPU for Python: those of the plug-in, so that files and recorded functions take turns, too.
#pragma once

#include "recording/torch.hpp"

namespace fpt::recording {

/// Give a module of Python the class `DeviceTurns` and the function `device_turns`.
void add_device_turns(pybind11::module_& module);

}  // namespace fpt::recording
