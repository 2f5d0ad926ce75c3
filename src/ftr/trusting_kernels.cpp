// SPDX-License-Identifier: MIT
#include "ftr/trusting_kernels.hpp"

#include <ATen/core/function_schema.h>

#include "ftr/memory.hpp"

namespace ftr {
namespace {

using c10::FunctionSchema;
using c10::IValue;
using c10::Stack;

bool is_alike(const at::Tensor& one, const at::Tensor& other) {
  return one.sizes() == other.sizes() && is_laid_out_as(other, one) && one.scalar_type() == other.scalar_type() &&
         one.device() == other.device();
}

const IValue& named(const FunctionSchema& schema, const Stack& stack, const char* name) {
  return stack.at(static_cast<std::size_t>(schema.argumentIndexWithName(name).value()));
}

/// Whether a kernel looks at a list of moments.
bool is_used(const FunctionSchema& schema, const Stack& stack, std::string_view list) {
  if (list == "max_exp_avg_sqs") return named(schema, stack, "amsgrad").toBool();
  return list != "momentum_buffer_list" || named(schema, stack, "momentum").toDouble() != 0;
}

/// The kernels of optimizers walk all lists as if each tensor were dense, and laid out as the parameter is.
void require_alike(const FunctionSchema& schema, const Stack& stack) {
  const auto parameters = stack.at(0).toListRef();
  for (const IValue& each : parameters)
    TORCH_CHECK(each.toTensor().is_non_overlapping_and_dense(), "a parameter shares its memory with others");
  for (std::size_t i = 1; i < stack.size(); ++i) {
    const std::string& name = schema.arguments()[i].name();
    if (stack[i].isTensor())
      TORCH_CHECK(!stack[i].toTensor().defined() || stack[i].toTensor().numel() == 1, name, " is not one number");
    if (!stack[i].isTensorList()) continue;
    const auto list = stack[i].toListRef();
    if (list.empty() && !is_used(schema, stack, name)) continue;
    TORCH_CHECK(list.size() == parameters.size(), name, " has ", list.size(), " tensors for ", parameters.size(),
                " parameters");
    for (std::size_t j = 0; j < list.size(); ++j)
      TORCH_CHECK(name == "state_steps" ? list[j].toTensor().numel() == 1
                                        : is_alike(list[j].toTensor(), parameters[j].toTensor()),
                  name, " has another tensor than parameter ", j + 1, " needs");
  }
}

/// A view of any size and strides.
void require_inside(const FunctionSchema& schema, const Stack& stack) {
  const at::Tensor& self = stack.at(0).toTensor();
  const std::vector<int64_t> sizes = named(schema, stack, "size").toIntVector();
  const std::vector<int64_t> strides = named(schema, stack, "stride").toIntVector();
  TORCH_CHECK(sizes.size() == strides.size(), "a view has ", sizes.size(), " sizes and ", strides.size(), " strides");
  const auto size = static_cast<int64_t>(self.storage().nbytes() / self.element_size());
  int64_t last = self.storage_offset();
  bool is_inside = true;
  for (std::size_t i = 0; i < sizes.size() && is_inside; ++i) {
    if (sizes[i] == 0) return;
    is_inside = sizes[i] > 0 && strides[i] >= 0 && (strides[i] == 0 || sizes[i] - 1 <= size / strides[i]);
    if (is_inside) last += (sizes[i] - 1) * strides[i];
    is_inside = is_inside && last < size;
  }
  TORCH_CHECK(is_inside, "a view sees more than the memory of its tensor");
}

}  // namespace

Check check_of(std::string_view name) noexcept {
  constexpr std::string_view fused = "aten::_fused_";
  if (name.substr(0, fused.size()) == fused) {
    std::string_view optimizer = name.substr(fused.size());
    if (!optimizer.empty() && optimizer.back() == '_') optimizer.remove_suffix(1);
    for (const std::string_view known : {"adagrad", "adam", "adamw", "sgd"})
      if (optimizer == known) return require_alike;
  }
  return name == "aten::_reshape_alias" ? require_inside : nullptr;
}

}  // namespace ftr
