// SPDX-License-Identifier: MIT
/// Graphs of a GPU for Python, captured by the plug-in as those of files are, and their turns.
#pragma once

#include "recording/torch.hpp"

namespace fpt::recording {

/// Give a module of Python the classes `DeviceTurns` and `DeviceGraph`, and the functions `device_turns` and `capture`.
void add_device_graphs(pybind11::module_& module);

}  // namespace fpt::recording
