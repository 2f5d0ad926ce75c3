// SPDX-License-Identifier: MIT
#include "plugin/eager/tensor_training.hpp"

#include "plugin/eager/eager_tensor.hpp"

namespace fpt::direct {
namespace {

// From here on plain gradient descent takes the fused kernel: _ELEMENTS_TO_FUSE of runners/objects/optimizers.py.
constexpr int64_t elements_to_fuse = 65536;

/// Measured: see optimizers.py.
bool gains_by_fusing(const Optimizer& optimizer) {
  if (optimizer.settings().kind != 0 || optimizer.settings().momentum != 0) return true;
  int64_t elements = 0;
  for (const Moments& each : optimizer.moments()) {
    if (!each.parameter.is_cpu()) return true;
    elements += each.parameter.numel();
  }
  return elements >= elements_to_fuse;
}

void step_plainly(Optimizer& optimizer) {
  const OptimizerSettings& settings = optimizer.settings();
  for (Moments& each : optimizer.moments()) {
    const at::Tensor& gradient = each.parameter.grad();
    if (!gradient.defined()) continue;
    const bool decays = settings.weight_decay != 0;
    each.parameter.add_(decays ? gradient.add(each.parameter, settings.weight_decay) : gradient, -settings.lr);
  }
}

}  // namespace

std::optional<TensorTraining> make_training(const OptimizerSettings& settings, const std::vector<at::Tensor>& tensors) {
  std::vector<Moments> parameters;
  for (const at::Tensor& tensor : tensors) {
    const auto is_same = [&tensor](const Moments& each) { return each.parameter.is_same(tensor); };
    const bool is_new = std::none_of(parameters.begin(), parameters.end(), is_same);
    if (!is_new || !tensor.requires_grad() || !tensor.is_leaf() || !tensor.is_floating_point()) return std::nullopt;
    parameters.push_back({{}, tensor, {}, {}, {}, 0});
  }
  if (parameters.empty()) return std::nullopt;
  Optimizer optimizer(settings, std::move(parameters));
  const bool is_fused = gains_by_fusing(optimizer);
  return TensorTraining{std::move(optimizer), is_fused};
}

bool step(TensorTraining& training) {
  const std::vector<Moments>& parameters = training.optimizer.moments();
  if (std::none_of(parameters.begin(), parameters.end(),
                   [](const Moments& each) { return each.parameter.grad().defined(); }))
    return false;
  const at::NoGradGuard no_gradients;
  training.is_fused ? training.optimizer.step() : step_plainly(training.optimizer);
  return true;
}

}  // namespace fpt::direct
