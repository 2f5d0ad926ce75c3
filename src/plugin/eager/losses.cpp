// SPDX-License-Identifier: MIT
#include "plugin/eager/losses.hpp"

#include <ATen/core/Reduction.h>
#include <ATen/ops/binary_cross_entropy.h>
#include <ATen/ops/binary_cross_entropy_with_logits.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/huber_loss.h>
#include <ATen/ops/kl_div.h>
#include <ATen/ops/l1_loss.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/nll_loss_nd.h>
#include <ATen/ops/smooth_l1_loss.h>

namespace fpt::direct {
namespace {

using T = const at::Tensor&;

struct Loss {
  std::string_view class_name, function;
  bool is_of_one_shape;  ///< Python warns of a target of another one
  at::Tensor (*compute)(T values, T target, int64_t reduction);
};

constexpr Loss losses[] = {
    {"MSELoss", "mse_loss", true, [](T x, T y, int64_t code) { return at::mse_loss(x, y, code); }},
    {"L1Loss", "l1_loss", true, [](T x, T y, int64_t code) { return at::l1_loss(x, y, code); }},
    {"SmoothL1Loss", "smooth_l1_loss", true, [](T x, T y, int64_t code) { return at::smooth_l1_loss(x, y, code); }},
    {"HuberLoss", "huber_loss", true, [](T x, T y, int64_t code) { return at::huber_loss(x, y, code); }},
    {"CrossEntropyLoss", "cross_entropy", false,
     [](T x, T y, int64_t code) { return at::cross_entropy_loss(x, y, /*weight=*/{}, code); }},
    {"NLLLoss", "nll_loss", false, [](T x, T y, int64_t code) { return at::nll_loss_nd(x, y, /*weight=*/{}, code); }},
    {"KLDivLoss", "kl_div", false, [](T x, T y, int64_t code) { return at::kl_div(x, y, code); }},
    {"BCELoss", "binary_cross_entropy", true,
     [](T x, T y, int64_t code) { return at::binary_cross_entropy(x, y, /*weight=*/{}, code); }},
    {"BCEWithLogitsLoss", "binary_cross_entropy_with_logits", true,
     [](T x, T y, int64_t code) { return at::binary_cross_entropy_with_logits(x, y, /*weight=*/{}, {}, code); }}};

const Loss* find_loss(std::string_view name, std::string_view Loss::* kind) noexcept {
  for (const Loss& loss : losses)
    if (loss.*kind == name) return &loss;
  return nullptr;
}

int64_t code_of(std::string_view reduction) {
  if (reduction.empty() || reduction == "mean") return at::Reduction::Mean;
  if (reduction == "sum") return at::Reduction::Sum;
  if (reduction == "none") return at::Reduction::None;
  throw NotHere();
}

}  // namespace

bool is_loss(std::string_view name) noexcept { return find_loss(name, &Loss::function) != nullptr; }

std::string_view function_of_loss(std::string_view class_name) noexcept {
  const Loss* found = find_loss(class_name, &Loss::class_name);
  return found ? found->function : std::string_view();
}

c10::IValue network_loss(FunctionCall& call, const std::string& name) {
  const bool is_reduced = call.count() == 3 && call.names[2] == "reduction" && call.values[2].isString();
  if (call.count() != 2 && !is_reduced) throw NotHere();
  const Loss& loss = *find_loss(name, &Loss::function);
  const at::Tensor &values = call.tensor(0), &target = call.tensor(1);
  if (loss.is_of_one_shape && values.sizes() != target.sizes()) throw NotHere();
  const std::string_view reduction = is_reduced ? std::string_view(call.values[2].toStringRef()) : "";
  if (name != "kl_div") return loss.compute(values, target, code_of(reduction));
  // Python warns of the mean over all elements, and makes that over a batch of the sum
  if (reduction.empty() || reduction == "mean") throw NotHere();
  if (reduction != "batchmean") return loss.compute(values, target, code_of(reduction));
  const at::Tensor sum = loss.compute(values, target, at::Reduction::Sum);
  return values.dim() == 0 ? sum : sum.div(at::Scalar(values.size(0)));
}

}  // namespace fpt::direct
