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

#include "plugin/eager/schema_call.hpp"

namespace fpt::direct {
namespace {

int64_t code_of(const std::string& reduction) {
  if (reduction.empty() || reduction == "mean") return at::Reduction::Mean;
  if (reduction == "sum") return at::Reduction::Sum;
  if (reduction == "none") return at::Reduction::None;
  throw NotHere();
}

/// Values and a target of one shape.
template <auto compute>
at::Tensor of_one_shape(const at::Tensor& values, const at::Tensor& target, const std::string& reduction) {
  if (values.sizes() != target.sizes()) throw NotHere();
  return compute(values, target, code_of(reduction));
}

at::Tensor mse(const at::Tensor& values, const at::Tensor& target, int64_t code) {
  return at::mse_loss(values, target, code);
}
at::Tensor l1(const at::Tensor& values, const at::Tensor& target, int64_t code) {
  return at::l1_loss(values, target, code);
}
at::Tensor smooth_l1(const at::Tensor& values, const at::Tensor& target, int64_t code) {
  return at::smooth_l1_loss(values, target, code);
}
at::Tensor huber(const at::Tensor& values, const at::Tensor& target, int64_t code) {
  return at::huber_loss(values, target, code);
}
at::Tensor binary(const at::Tensor& values, const at::Tensor& target, int64_t code) {
  return at::binary_cross_entropy(values, target, /*weight=*/{}, code);
}
at::Tensor binary_with_logits(const at::Tensor& values, const at::Tensor& target, int64_t code) {
  return at::binary_cross_entropy_with_logits(values, target, /*weight=*/{}, /*pos_weight=*/{}, code);
}

at::Tensor cross_entropy(const at::Tensor& values, const at::Tensor& target, const std::string& reduction) {
  return at::cross_entropy_loss(values, target, /*weight=*/{}, code_of(reduction));
}
at::Tensor nll(const at::Tensor& values, const at::Tensor& target, const std::string& reduction) {
  return at::nll_loss_nd(values, target, /*weight=*/{}, code_of(reduction));
}
at::Tensor kl_div(const at::Tensor& values, const at::Tensor& target, const std::string& reduction) {
  if (reduction.empty() || reduction == "mean") throw NotHere();
  if (reduction != "batchmean") return at::kl_div(values, target, code_of(reduction));
  const at::Tensor sum = at::kl_div(values, target, at::Reduction::Sum);
  return values.dim() == 0 ? sum : sum.div(at::Scalar(values.size(0)));
}

using Loss = at::Tensor (*)(const at::Tensor&, const at::Tensor&, const std::string&);

constexpr std::pair<std::string_view, Loss> losses[] = {
    {"mse_loss", of_one_shape<mse>},
    {"l1_loss", of_one_shape<l1>},
    {"smooth_l1_loss", of_one_shape<smooth_l1>},
    {"huber_loss", of_one_shape<huber>},
    {"cross_entropy", cross_entropy},
    {"nll_loss", nll},
    {"kl_div", kl_div},
    {"binary_cross_entropy", of_one_shape<binary>},
    {"binary_cross_entropy_with_logits", of_one_shape<binary_with_logits>}};

const auto* find_loss(std::string_view name) noexcept {
  return std::find_if(std::begin(losses), std::end(losses), [name](const auto& each) { return each.first == name; });
}

}  // namespace

bool is_loss(std::string_view name) noexcept { return find_loss(name) != std::end(losses); }

at::Tensor loss_named(std::string_view name, const at::Tensor& values, const at::Tensor& target,
                      const std::string& reduction) {
  const auto* found = find_loss(name);
  if (found == std::end(losses)) throw NotHere();
  return found->second(values, target, reduction);
}

}  // namespace fpt::direct
