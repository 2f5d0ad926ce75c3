// SPDX-License-Identifier: MIT
/// The nodes of a graph, wherever they stand in it.
#pragma once

#include "plugin/torch.hpp"

namespace fpt::direct {

template <class Visit>
void for_each_node(torch::jit::Block* block, const Visit& visit) {
  for (torch::jit::Node* node : block->nodes()) {
    visit(node);
    for (torch::jit::Block* inner : node->blocks()) for_each_node(inner, visit);
  }
}

}  // namespace fpt::direct
