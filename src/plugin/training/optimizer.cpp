// SPDX-License-Identifier: MIT
#include "plugin/training/optimizer.hpp"

#include <ATen/ops/_fused_adam.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/_fused_sgd.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <ATen/ops/view_as_real.h>
#include <ATen/ops/zeros_like.h>

#include "ftr/memory.hpp"
#include "plugin/tensors.hpp"

namespace fpt::direct {
namespace {

enum Kind { sgd = 0, adam = 1, adamw = 2 };

using Kernel = void (*)(at::TensorList, at::TensorList, at::TensorList, at::TensorList, at::TensorList, at::TensorList,
                        double, double, double, double, double, bool, bool, const std::optional<at::Tensor>&,
                        const std::optional<at::Tensor>&);

at::Tensor as_real(const at::Tensor& tensor) { return tensor.is_complex() ? at::view_as_real(tensor) : tensor; }

/// The same numbers, laid out as another tensor of this shape.
at::Tensor laid_out_as(const at::Tensor& like, const at::Tensor& tensor) {
  if (ftr::is_laid_out_as(like, tensor) && !tensor.is_conj() && !tensor.is_neg()) return tensor;
  return at::empty_like(like).copy_(tensor);
}

// From here on plain gradient descent takes the fused kernel: _ELEMENTS_TO_FUSE of runners/objects/optimizers.py.
constexpr int64_t elements_to_fuse = 65536;

/// Measured: see optimizers.py.
bool gains_by_fusing(const OptimizerSettings& settings, const std::vector<NamedTensor>& parameters) {
  if (settings.kind != sgd || settings.momentum != 0) return true;
  int64_t elements = 0;
  for (const NamedTensor& each : parameters) {
    if (!each.second.is_cpu()) return true;
    elements += each.second.numel();
  }
  return elements >= elements_to_fuse;
}

}  // namespace

/// Parameters that one kernel takes together: of one device, one type and one number of steps.
///
/// The kernels walk all tensors as if they were dense, and laid out as the parameter is. So a section of an array is
/// stepped in a dense copy, and on its own: sections may overlap.
struct Optimizer::Batch {
  at::Device device;
  at::ScalarType type;
  double steps;
  at::Tensor section;  ///< of which `parameters` has the dense copy; undefined for dense parameters
  std::vector<at::Tensor> parameters, gradients, first, second, largest, counts;
  bool holds(const Moments& moments) const {
    return !section.defined() && moments.parameter.is_non_overlapping_and_dense() &&
           moments.parameter.device() == device && moments.parameter.scalar_type() == type && moments.steps == steps;
  }
};

Optimizer::Optimizer(const OptimizerSettings& settings, const std::vector<NamedTensor>& parameters)
    : settings_(settings), is_fused_(gains_by_fusing(settings, parameters)) {
  for (const NamedTensor& each : parameters) moments_.push_back({each.first, each.second});
}

void Optimizer::prepare(Moments& moments) const {
  if (moments.steps > 0) return;
  if (settings_.kind == sgd) {
    if (settings_.momentum != 0) moments.first = at::empty_like(moments.parameter, at::MemoryFormat::Preserve);
    return;
  }
  moments.first = at::zeros_like(moments.parameter, at::MemoryFormat::Preserve);
  moments.second = at::zeros_like(moments.parameter, at::MemoryFormat::Preserve);
  if (settings_.amsgrad) moments.largest = at::zeros_like(moments.parameter, at::MemoryFormat::Preserve);
}

void Optimizer::clear_gradients() {
  for (Moments& moments : moments_) moments.parameter.mutable_grad().reset();
}

bool Optimizer::step() {
  const auto has_gradient = [](const Moments& each) { return each.parameter.grad().defined(); };
  if (std::none_of(moments_.begin(), moments_.end(), has_gradient)) return false;
  const at::NoGradGuard no_gradients;
  is_fused_ ? step_fused() : step_plainly();
  return true;
}

void Optimizer::step_plainly() {
  for (Moments& each : moments_) {
    const at::Tensor& gradient = each.parameter.grad();
    if (!gradient.defined()) continue;
    const bool decays = settings_.weight_decay != 0;
    each.parameter.add_(decays ? gradient.add(each.parameter, settings_.weight_decay) : gradient, -settings_.lr);
  }
}

void Optimizer::step_fused() {
  std::vector<Batch> batches;
  for (Moments& moments : moments_) {
    const at::Tensor& gradient = moments.parameter.grad();
    if (!gradient.defined()) continue;
    const bool is_dense = moments.parameter.is_non_overlapping_and_dense();
    const at::Tensor parameter = is_dense ? moments.parameter : at::empty_like(moments.parameter);
    auto batch = std::find_if(batches.begin(), batches.end(), [&](const Batch& known) { return known.holds(moments); });
    if (batch == batches.end())
      batch = batches.insert(batches.end(), {moments.parameter.device(),
                                             moments.parameter.scalar_type(),
                                             moments.steps,
                                             is_dense ? at::Tensor() : as_real(moments.parameter),
                                             {},
                                             {},
                                             {},
                                             {},
                                             {},
                                             {}});
    prepare(moments);
    batch->parameters.push_back(as_real(parameter));
    batch->gradients.push_back(as_real(laid_out_as(parameter, gradient)));
    if (moments.first.defined()) batch->first.push_back(as_real(moments.first));
    if (moments.second.defined()) batch->second.push_back(as_real(moments.second));
    if (moments.largest.defined()) batch->largest.push_back(as_real(moments.largest));
  }
  for (Batch& batch : batches) {
    if (batch.section.defined()) batch.parameters[0].copy_(batch.section);
    settings_.kind == sgd ? step_sgd(batch, batch.steps == 0) : step_adam(batch);
    if (batch.section.defined()) batch.section.copy_(batch.parameters[0]);
  }
  for (Moments& moments : moments_) {
    if (!moments.parameter.grad().defined()) continue;
    ++moments.steps;
    moments.parameter.unsafeGetTensorImpl()
        ->bump_version();  // the fused kernels do not, and a graph may need the old one
  }
}

void Optimizer::step_sgd(Batch& batch, bool first) {
  at::_fused_sgd_(batch.parameters, batch.gradients, batch.first, settings_.weight_decay, settings_.momentum,
                  settings_.lr, settings_.dampening, settings_.nesterov != 0, /*maximize=*/false,
                  first && settings_.momentum != 0);
}

void Optimizer::step_adam(Batch& batch) {
  const at::Tensor count = at::full({}, batch.steps + 1, at::TensorOptions().dtype(at::kFloat).device(batch.device));
  batch.counts.assign(batch.parameters.size(), count);  // the kernels read it only
  const Kernel kernel =
      settings_.kind == adam ? static_cast<Kernel>(at::_fused_adam_) : static_cast<Kernel>(at::_fused_adamw_);
  kernel(batch.parameters, batch.gradients, batch.first, batch.second, batch.largest, batch.counts, settings_.lr,
         settings_.beta1, settings_.beta2, settings_.weight_decay, settings_.eps, settings_.amsgrad != 0,
         /*maximize=*/false, std::nullopt, std::nullopt);
}

}  // namespace fpt::direct
