// SPDX-License-Identifier: MIT
#include "plugin/direct_arguments.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "arrays/policy.hpp"
#include "arrays/texts.hpp"
#include "base/error.hpp"
#include "plugin/direct_tensor.hpp"
#include "values/assignment.hpp"
#include "values/scopes.hpp"

namespace fpt::direct {
namespace {

bool needs_nothing(const fpt_arg& arg) noexcept {
  return arg.status == FPT_OK && arg.handle == 0 && arg.access != FPT_COPY && !has_kept_text(arg);
}

bool has_graph(const fpt_arg& arg) { return is_tensor_handle(arg.handle) && records_gradients(*tensor_at(arg.handle)); }

}  // namespace

void require_names(Args inputs, Args targets, const CallName& call) {
  std::vector<std::string_view> names;
  const auto look_at = [&](Args args, const char* what, bool may_follow) {
    for (int32_t i = 0; i < args.count; ++i) {
      const std::string_view name = args[i].name;
      if (name.empty() && !names.empty() && !may_follow)
        refuse_nameless(concat(argument_label(what, i, args[i]), " of ", call));
      if (name.empty()) continue;
      if (std::find(names.begin(), names.end(), name) != names.end()) refuse_same_name("arguments", concat(call), name);
      names.push_back(name);
    }
  };
  look_at(inputs, "input", false);
  look_at(targets, "target", targets.count == 1);
}

DirectArguments::DirectArguments(Args args, const char* what, const CallName& call, Graphs graphs, bool same_layout)
    : args_(args), what_(what), call_(call), same_layout_(same_layout) {
  const auto record = [this] { recorded_.resize(static_cast<std::size_t>(std::max(args_.count, 1))); };
  if (graphs == Graphs::recorded_for_parameters) record();
  if (std::all_of(args.begin(), args.end(), needs_nothing)) return;
  resolved_.assign(args.begin(), args.end());
  args_.first = resolved_.data();
  for (int32_t i = 0; i < args.count; ++i) {
    if (args[i].status != FPT_OK) require_described(args[i], label(i));
    if (graphs == Graphs::dropped || !has_graph(args[i])) continue;
    if (graphs == Graphs::refused)
      fail(FPT_ERR_ARGUMENT, label(i), " requires gradients, and the direct path records none here: load the model ",
           "with backend=\"python\", or switch gradients off with scope%no_grad()");
    record();
  }
  for (int32_t i = 0; i < args.count; ++i) resolve(i);
}

void DirectArguments::hand_over(DirectAnswer& answer) const {
  for (const Owned& owned : owned_)
    if (owned.arg->handle != 0) answer.keep_if_shared(array_of(*owned.arg), owned.owner);
  for (const auto& [index, tensor] : tensors_)
    if (index < 64 && (answer.changed >> index & 1) != 0) note_written(tensor);
}

std::string DirectArguments::label(int32_t index) const {
  return concat(argument_label(what_, index, args_[index]), " of ", call_);
}

void DirectArguments::resolve(int32_t index) {
  fpt_arg& arg = resolved_[static_cast<std::size_t>(index)];
  if (is_tensor_handle(arg.handle)) {
    const TensorPtr given = tensor_at(arg.handle);
    if (!records()) {
      resolve_memory(index, given);
    } else {
      at::Tensor& tensor = recorded_[static_cast<std::size_t>(index)];
      tensor = shared_at_tensor_of(*given, same_layout_);
      if (!tensor.defined())
        fail(FPT_ERR_ARGUMENT, label(index), " is an object of Python of a class of its own: load the model with ",
             "backend=\"python\"");
      const int64_t handle = given->is_of_caller() ? 0 : arg.handle;
      arg = given->described_as(arg);
      arg.handle = handle;
    }
  }
  if (has_kept_text(arg)) texts_.push_back(text_owner(arg, label(index)));
  if (arg.access != FPT_COPY) return;
  Storage copy = claim_copy(arg);
  if (!copy) arg.handle = 0;  // a value
  if (copy) owned_.push_back({&arg, std::move(copy)});
  arg.access = FPT_IN;
}

void DirectArguments::resolve_memory(int32_t index, const TensorPtr& given) {
  fpt_arg& arg = resolved_[static_cast<std::size_t>(index)];
  if (!given->is_plain_memory()) tensors_.emplace_back(index, given);
  const int64_t handle = given->is_of_caller() ? 0 : arg.handle;
  const TensorPtr tensor = handle != 0 ? holding_memory(given) : given;
  std::shared_ptr<void> memory = tensor->owner();
  owned_.push_back({&arg, memory ? std::move(memory) : std::shared_ptr<void>(tensor)});
  if (handle != 0) require_memory(tensor->array(), tensor->array().dtype, tensor->array().rank, label(index));
  arg = tensor->described_as(arg);
  arg.handle = handle;
}

}  // namespace fpt::direct
