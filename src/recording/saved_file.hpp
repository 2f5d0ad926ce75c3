// SPDX-License-Identifier: MIT
/// Saved recordings for Python: the class `SavedFile`, which hands everything to the plug-in.
#pragma once

#include "recording/torch.hpp"

namespace fpt::recording {

/// Give a module of Python that class.
void add_saved_file(pybind11::module_& module);

}  // namespace fpt::recording
