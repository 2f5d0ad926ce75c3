// SPDX-License-Identifier: MIT
/// The fast form of a model for forward alone, with its parameters as constants.
#pragma once

#include "plugin/model/torchscript.hpp"

namespace fpt::direct {

/// A copy of the model that has forward only, in the mode that the model is in.
torch::jit::Module frozen(const torch::jit::Module& module);

}  // namespace fpt::direct
