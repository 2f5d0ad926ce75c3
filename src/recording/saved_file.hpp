// SPDX-License-Identifier: MIT
/// Saved recordings for Python: the class `SavedFile`, which hands everything to the plug-in.
#pragma once

#include <string>

#include "recording/torch.hpp"
#include "shared/saved_module.hpp"

namespace fpt::recording {

/// What the plug-in offers, a library of this build. ImportError.
const SavedModules& modules_of(const std::string& plugin);

/// Give a module of Python that class.
void add_saved_file(pybind11::module_& module);

}  // namespace fpt::recording
