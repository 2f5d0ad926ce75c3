// SPDX-License-Identifier: MIT
#include "plugin/recording/recording_call.hpp"

#include "arrays/policy.hpp"
#include "ftr/memory.hpp"
#include "plugin/direct_answer.hpp"
#include "plugin/scalars.hpp"

namespace fpt::direct {
namespace {

// NOLINTNEXTLINE(misc-no-recursion)
bool has_tensor(const ftr::SavedNode& node) {
  return node.kind == ftr::SavedNode::Kind::tensor || std::any_of(node.items.begin(), node.items.end(), has_tensor);
}

/// Before anything runs: what comes out is handed to Fortran, which has names for one level.
void require_flat(const ftr::SavedNode& result, const std::string& label) {
  for (const ftr::SavedNode& each : result.items)
    if (each.kind != ftr::SavedNode::Kind::tensor && each.kind != ftr::SavedNode::Kind::value &&
        (has_tensor(each) || !tensor_of_numbers(ftr::filled_result(each, {})).defined()))
      fail(FPT_ERR_RESULT_TYPE, label, " was recorded with a container inside another; results may not be nested");
}

/// A number of a result, a tensor of one or a constant.
c10::Scalar number_in_result(const ftr::SavedNode& node, const std::vector<at::Tensor>& tensors,
                             const std::string& label) {
  if (node.kind == ftr::SavedNode::Kind::tensor && tensors[node.tensor].numel() == 1)
    return tensors[node.tensor].item();
  if (node.kind == ftr::SavedNode::Kind::value && node.value.isScalar()) return node.value.toScalar();
  fail(FPT_ERR_RESULT_TYPE, label, " was recorded with results that are no logical and a number");
}

}  // namespace

void choose_recording(ftr::Call& call, const ftr::State& state) {
  try {
    call.choose(state);
  } catch (const ftr::Refusal& refusal) {
    if (refusal.why() != ftr::Why::dtype) throw;
    ftr::fail(ftr::Why::dtype, refusal.what(), "; load(..., dtype=...) converts real arrays on their way in");
  }
}

RecordedCall::RecordedCall(const Settings& settings, RecordedFunction& function, Inputs inputs, Inputs targets)
    : settings_(settings), label_(function.of.label), frame_(function.frames), call_(function.of) {
  frame_->begin(settings, function.of.writes);
  add(inputs, "input");
  add(targets, "target");
}

void RecordedCall::add(Inputs arguments, const char* what) {
  for (int32_t i = 0; i < arguments.count; ++i) {
    const fpt_arg& arg = arguments.args[i];
    const bool is_array = !is_value(arg);
    c10::IValue value = is_array ? c10::IValue(frame_->tensor(settings_, arg, what, i)) : value_of(arg);
    const bool may_change = arg.access == FPT_OUT || arg.handle != 0 || (is_array && frame_->is_own_copy());
    call_.add({std::move(value), arg.name, !may_change});
    arguments_.push_back({&arg, what, i});
  }
}

void RecordedCall::run(ftr::State& state, const ftr::CallSettings& settings) {
  choose_recording(call_, state);
  require_writable();
  require_flat(call_.recording().tape.result, label_);
  call_.run(state, settings);
}

/// What the recording writes to must be described so, at least by another argument that is the same array.
void RecordedCall::require_writable() const {
  const std::vector<std::size_t> written = call_.written();
  for (const std::size_t place : written) {
    const ftr::Given& given = call_.given(place);
    const auto writes_it = [&](std::size_t other) {
      const ftr::Given& another = call_.given(other);
      return !another.is_read_only && ftr::is_one_tensor(another.value.toTensor(), given.value.toTensor());
    };
    if (given.is_read_only && std::none_of(written.begin(), written.end(), writes_it))
      refuse_change(argument_label(arguments_[place].what, arguments_[place].index, *arguments_[place].arg), label_,
                    "model");
  }
}

Training RecordedCall::trained() const {
  const ftr::SavedNode& result = call_.recording().tape.result;
  if (result.items.size() != 2)
    fail(FPT_ERR_RESULT_TYPE, label_, " was recorded with a result that is no pair of a logical and a number");
  const auto number = [&](std::size_t i) { return number_in_result(result.items[i], tensors(), label_); };
  return {number(0).toBool(), number(1).toDouble()};
}

void RecordedCall::finish(at::ArrayRef<at::Tensor> results) {
  call_.forget();  // what this call holds of its inputs is nothing that the recording has kept
  frame_->finish(label_, results);
}

}  // namespace fpt::direct
