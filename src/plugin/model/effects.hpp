// SPDX-License-Identifier: MIT
/// What a method of a TorchScript model does besides computing, told from the nodes of its graph.
#pragma once

#include "plugin/model/torchscript.hpp"

namespace fpt::direct {

struct Effects {
  bool changes_state = false;        ///< writes attributes of the model, statistics of a normalisation among them
  bool uses_gradients = false;       ///< computes gradients itself, or asks whether they are on
  bool replaces_attributes = false;  ///< in some mode an attribute gets another value, which a copy does not see
};

/// The effects in the mode, training or evaluation, that all parts of the model are in.
Effects effects_of(const torch::jit::Module& module, const std::string& method);

/// Visit the nodes of a graph, wherever they stand in it.
template <class Visit>
void for_each_node(torch::jit::Block* block, const Visit& visit) {
  for (torch::jit::Node* node : block->nodes()) {
    visit(node);
    for (torch::jit::Block* inner : node->blocks()) for_each_node(inner, visit);
  }
}

}  // namespace fpt::direct
