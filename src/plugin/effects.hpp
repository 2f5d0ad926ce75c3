// SPDX-License-Identifier: MIT
/// What a method of a TorchScript model does besides computing, told from its graph.
#pragma once

#include "plugin/torch.hpp"

namespace fpt::direct {

struct Effects {
  bool changes_state = false;        ///< writes attributes of the model, statistics of a normalisation among them
  bool uses_gradients = false;       ///< computes gradients itself, or asks whether they are on
  bool replaces_attributes = false;  ///< in some mode an attribute gets another value, which a copy does not see
};

/// The effects in the mode, training or evaluation, that all parts of the model are in.
Effects effects_of(const torch::jit::Module& module, const std::string& method);

}  // namespace fpt::direct
