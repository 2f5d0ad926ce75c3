// SPDX-License-Identifier: MIT
#include "plugin/model/effects.hpp"

#include <torch/csrc/jit/ir/alias_analysis.h>
#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/passes/constant_propagation.h>
#include <torch/csrc/jit/passes/inliner.h>

namespace fpt::direct {
namespace {

using torch::jit::Graph;
using torch::jit::Node;

bool is_any_of(const Node* node, std::initializer_list<const char*> names) {
  const std::string_view kind = node->kind().toQualString();
  return std::any_of(names.begin(), names.end(), [&](const char* name) { return kind == name; });
}

std::shared_ptr<Graph> inlined_graph(const torch::jit::Module& module, const std::string& method) {
  auto graph = torch::jit::toGraphFunction(module.get_method(method).function()).graph()->copy();
  torch::jit::Inline(*graph);
  return graph;
}

/// Leave out what is never run in the mode of the model: a batch normalisation counts its batches in training alone.
void settle_mode(std::shared_ptr<Graph>& graph, bool is_training) {
  std::vector<Node*> asked;
  for_each_node(graph->block(), [&](Node* node) {
    if (node->kind() == c10::prim::GetAttr && node->s(c10::attr::name) == "training" &&
        node->output()->type()->kind() == c10::TypeKind::BoolType)
      asked.push_back(node);
  });
  for (Node* node : asked) {
    const torch::jit::WithInsertPoint here(node);
    node->output()->replaceAllUsesWith(graph->insertConstant(is_training));
    node->destroy();
  }
  torch::jit::ConstantPropagation(graph);
}

/// True for a normalisation that computes its statistics from its input, and so may update those that it keeps.
bool updates_statistics(const Node* node) {
  const char* name = node->kind() == c10::aten::batch_norm      ? "training"
                     : node->kind() == c10::aten::instance_norm ? "use_input_stats"
                                                                : nullptr;
  if (!name) return false;
  const auto updates = torch::jit::toIValue(node->namedInput(name));
  return !updates || updates->toBool();
}

}  // namespace

Effects effects_of(const torch::jit::Module& module, const std::string& method) {
  std::shared_ptr<Graph> graph = inlined_graph(module, method);
  Effects effects;
  for_each_node(graph->block(), [&](Node* node) {
    if (is_any_of(node, {"prim::SetAttr", "prim::CallMethod", "prim::CallFunction", "prim::fork"}))
      effects.replaces_attributes = true;
  });
  settle_mode(graph, module.is_training());
  torch::jit::ValueSet attributes;
  for_each_node(graph->block(), [&](Node* node) {
    if (is_any_of(node, {"aten::grad", "aten::backward", "aten::requires_grad_", "aten::set_grad_enabled",
                         "aten::_set_grad_enabled", "aten::is_grad_enabled", "prim::Enter", "prim::requires_grad",
                         "aten::is_leaf", "aten::is_inference"}))
      effects.uses_gradients = true;
    if (is_any_of(node, {"prim::SetAttr", "prim::CallMethod", "prim::CallFunction", "prim::fork"}) ||
        updates_statistics(node))
      effects.changes_state = true;
    if (node->kind() == c10::prim::GetAttr) attributes.insert(node->output());
  });
  const torch::jit::AliasDb aliases(graph);
  for_each_node(graph->block(), [&](Node* node) {
    if (aliases.writesToAlias(node, attributes)) effects.changes_state = true;
  });
  return effects;
}

}  // namespace fpt::direct
