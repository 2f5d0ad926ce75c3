// SPDX-License-Identifier: MIT
/// What the parts of the plug-in, which do not know each other, give to the whole.
#pragma once

#include "plugin/model.hpp"
#include "values/engine.hpp"

namespace fpt::direct {

std::unique_ptr<Model> load_package(Settings settings);
std::unique_ptr<Model> load_recording(Settings settings);

/// Tensors of the program.
Engine& engine_of_torch();
/// The functions of torch, and the objects that they make.
std::unique_ptr<Runner> functions_of_torch(bool same_layout);

}  // namespace fpt::direct
