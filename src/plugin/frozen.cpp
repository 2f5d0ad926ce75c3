// SPDX-License-Identifier: MIT
#include "plugin/frozen.hpp"

#include <torch/csrc/jit/passes/freeze_module.h>
#include <torch/csrc/jit/passes/frozen_graph_optimizations.h>

#include "plugin/nodes.hpp"
#include "plugin/rewrite.hpp"

namespace fpt::direct {
namespace {

using torch::jit::InlinedCallStack;
using torch::jit::Node;

/// A node remembers the functions that it was inlined from by their addresses, and torch asks those for their names
/// when it describes an error. Freezing has deleted them: forward itself, which lives as long as the node, takes their
/// place. The lines of the source stay what they were.
void keep_call_stacks_valid(torch::jit::Graph& graph, torch::jit::Function& forward) {
  for_each_node(graph.block(), [&](Node* node) {
    const auto stale = node->callstack();
    if (!stale) return;
    torch::jit::InlinedCallStackPtr valid;
    auto entries = (*stale)->vec();
    for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
      const torch::jit::SourceRange& line = std::get<torch::jit::SourceRange>(*entry);
      valid = valid ? c10::make_intrusive<InlinedCallStack>(valid, &forward, line)
                    : c10::make_intrusive<InlinedCallStack>(&forward, line);
    }
    node->setCallStack(valid);
  });
}

}  // namespace

torch::jit::Module frozen(const torch::jit::Module& module) {
  // torch::jit::freeze wants evaluation mode, but freezing keeps the mode that the model is in
  torch::jit::Module copy = module.is_training() ? torch::jit::freeze_module(module) : torch::jit::freeze(module);
  const torch::jit::Method forward = copy.get_method("forward");
  auto graph = forward.graph();
  if (module.is_training()) torch::jit::OptimizeFrozenGraph(graph, /*optimize_numerics=*/false);
  rewrite_exactly(*graph);
  keep_call_stacks_valid(*graph, forward.function());
  return copy;
}

}  // namespace fpt::direct
