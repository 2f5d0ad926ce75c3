// SPDX-License-Identifier: MIT
#include "plugin/rewrite.hpp"

#include <ATen/ops/addmm.h>
#include <ATen/ops/linear.h>
#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/runtime/custom_operator.h>

#include <array>

namespace fpt::direct {
namespace {

using torch::jit::Node;
using torch::jit::Stack;
using torch::jit::Value;

constexpr const char* linear_name = "ftn_pytorch::linear";

/// What at::linear computes. For matrices it is addmm with a transposed view of the weights, here given.
void linear(Stack& stack) {
  const at::Tensor bias = torch::jit::pop(stack).toTensor(), transposed = torch::jit::pop(stack).toTensor(),
                   x = torch::jit::pop(stack).toTensor();
  torch::jit::push(stack, x.dim() == 2 ? at::addmm(bias, x, transposed) : at::linear(x, transposed.t(), bias));
}

const torch::jit::RegisterOperators registered(
    {torch::jit::Operator("ftn_pytorch::linear(Tensor x, Tensor transposed, Tensor bias) -> Tensor", linear,
                          c10::AliasAnalysisKind::FROM_SCHEMA)});

/// Activations that have a form in place, which is named like them with an underscore.
constexpr std::array<const char*, 3> activations = {"aten::relu", "aten::sigmoid", "aten::tanh"};

std::optional<at::Tensor> constant_matrix(const Value* value, int64_t axes) {
  const auto constant = torch::jit::toIValue(value);
  if (!constant || !constant->isTensor()) return std::nullopt;
  const at::Tensor& tensor = constant->toTensor();
  const bool plain =
      tensor.defined() && tensor.layout() == at::kStrided && tensor.dim() == axes && !tensor.is_quantized();
  return plain ? std::optional(tensor) : std::nullopt;
}

/// The node that takes the place of a linear layer, or the layer itself where its weights are not constant.
Node* rewrite_linear(torch::jit::Graph& graph, Node* layer) {
  const auto weight = constant_matrix(layer->input(1), 2), bias = constant_matrix(layer->input(2), 1);
  if (!weight || !bias) return layer;
  const torch::jit::WithInsertPoint here(layer);
  Value* transposed = graph.insertConstant(weight->detach().t());
  Node* fast = graph.create(c10::Symbol::fromQualString(linear_name), {layer->input(0), transposed, layer->input(2)});
  fast->copyMetadata(layer);
  fast->insertBefore(layer);
  fast->output()->copyMetadata(layer->output());
  layer->output()->replaceAllUsesWith(fast->output());
  layer->destroy();
  return fast;
}

void rewrite_activation(torch::jit::Graph& graph, Node* layer) {
  // nobody but the activation may look at what it overwrites
  if (layer->output()->uses().size() != 1) return;
  Node* activation = layer->output()->uses()[0].user;
  const std::string name = activation->kind().toQualString();
  if (std::find(activations.begin(), activations.end(), name) == activations.end()) return;
  if (activation->owningBlock() != layer->owningBlock()) return;
  Node* in_place = graph.create(c10::Symbol::fromQualString(name + "_"), {layer->output()});
  in_place->copyMetadata(activation);
  in_place->insertBefore(activation);
  in_place->output()->copyMetadata(activation->output());
  activation->output()->replaceAllUsesWith(in_place->output());
  activation->destroy();
}

void rewrite_block(torch::jit::Graph& graph, torch::jit::Block* block) {
  std::vector<Node*> layers;
  for (Node* node : block->nodes()) {
    if (node->kind() == c10::aten::linear) layers.push_back(node);
    for (torch::jit::Block* inner : node->blocks()) rewrite_block(graph, inner);
  }
  for (Node* layer : layers) rewrite_activation(graph, rewrite_linear(graph, layer));
}

}  // namespace

void rewrite_exactly(torch::jit::Graph& graph) { rewrite_block(graph, graph.block()); }

}  // namespace fpt::direct
