// SPDX-License-Identifier: MIT
#include "plugin/recording/recording_call.hpp"

#include <ATen/ops/empty_strided.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <bit>
#include <sstream>

#include "arrays/policy.hpp"
#include "plugin/direct_answer.hpp"
#include "plugin/scalars.hpp"

namespace fpt::direct {
namespace {

// so that no size that follows from it overflows
constexpr int64_t largest_batch = int64_t{1} << 31;

/// A constant of a result, or what is built of them and tensors.
// NOLINTNEXTLINE(misc-no-recursion): the reader of files limits the depth
c10::IValue filled_result(const SavedNode& node, const std::vector<at::Tensor>& tensors) {
  if (node.kind == SavedNode::Kind::tensor) return tensors[node.tensor];
  if (node.kind == SavedNode::Kind::value) return node.value;
  std::vector<c10::IValue> items;
  for (const SavedNode& each : node.items) items.push_back(filled_result(each, tensors));
  if (node.kind == SavedNode::Kind::named) {
    // only the names are asked for, and torch allows no list of anything as the type of a field
    const std::vector<c10::TypePtr> types(items.size(), c10::TensorType::get());
    return c10::ivalue::Tuple::createNamed(std::move(items), c10::TupleType::createNamed("result", node.names, types));
  }
  if (node.kind == SavedNode::Kind::list) {
    c10::impl::GenericList list(c10::AnyType::get());
    for (c10::IValue& each : items) list.push_back(std::move(each));
    return list;
  }
  if (node.kind == SavedNode::Kind::dict) {
    c10::impl::GenericDict dict(c10::StringType::get(), c10::AnyType::get());
    for (std::size_t i = 0; i < items.size(); ++i) dict.insert(node.names[i], items[i]);
    return dict;
  }
  return c10::ivalue::Tuple::create(std::move(items));
}

// NOLINTNEXTLINE(misc-no-recursion)
bool has_tensor(const SavedNode& node) {
  return node.kind == SavedNode::Kind::tensor || std::any_of(node.items.begin(), node.items.end(), has_tensor);
}

/// Before anything runs: what comes out is handed to Fortran, which has names for one level.
void require_flat(const SavedNode& result, const std::string& label) {
  for (const SavedNode& each : result.items)
    if (each.kind != SavedNode::Kind::tensor && each.kind != SavedNode::Kind::value &&
        (has_tensor(each) || !tensor_of_numbers(filled_result(each, {})).defined()))
      fail(FPT_ERR_RESULT_TYPE, label, " was recorded with a container inside another; results may not be nested");
}

/// A number of a result, a tensor of one or a constant.
c10::Scalar number_in_result(const SavedNode& node, const std::vector<at::Tensor>& tensors, const std::string& label) {
  if (node.kind == SavedNode::Kind::tensor && tensors[node.tensor].numel() == 1) return tensors[node.tensor].item();
  if (node.kind == SavedNode::Kind::value && node.value.isScalar()) return node.value.toScalar();
  fail(FPT_ERR_RESULT_TYPE, label, " was recorded with results that are no logical and a number");
}

bool is_equal(const c10::IValue& given, const c10::IValue& recorded) {
  if (given.isBool() || recorded.isBool())
    return given.isBool() && recorded.isBool() && given.toBool() == recorded.toBool();
  if (given.isNone() || recorded.isNone()) return given.isNone() && recorded.isNone();
  if (given.isString() && recorded.isString()) return given.toStringRef() == recorded.toStringRef();
  if (given.isInt() && recorded.isInt()) return given.toInt() == recorded.toInt();
  // zero and minus zero are two constants, and what is no number is the same as itself
  return given.isDouble() && recorded.isDouble() &&
         std::bit_cast<uint64_t>(given.toDouble()) == std::bit_cast<uint64_t>(recorded.toDouble());
}

std::string shown(const c10::IValue& given) {
  if (given.isTensor()) {
    const at::Tensor& tensor = given.toTensor();
    return concat(dtype_name(dtype_of(tensor.scalar_type())), " ", shape_text(array_of_tensor(tensor, true)));
  }
  Plain<std::ostringstream> text;
  text << given;
  return text.str();
}

/// Whether an argument fits, and if not, which status says so. `batch` is found out by the first size that tells it.
fpt_status fits(const SavedInput& input, const c10::IValue& given, int64_t least, int64_t& batch) {
  if (!input.is_tensor) return !given.isTensor() && is_equal(given, input.constant) ? FPT_OK : FPT_ERR_ARGUMENT;
  if (!given.isTensor() || given.toTensor().scalar_type() != input.dtype) return FPT_ERR_DTYPE;
  const at::IntArrayRef sizes = given.toTensor().sizes();
  if (sizes.size() != input.sizes.size()) return FPT_ERR_SHAPE;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const recording::Size& size = input.sizes[i];
    if (size.factor != 0 && batch == 0) batch = (sizes[i] - size.offset) / size.factor;
    if (size.factor != 0 && (batch < least || batch > largest_batch)) return FPT_ERR_SHAPE;
    if (size.of(batch) != sizes[i]) return FPT_ERR_SHAPE;
  }
  return FPT_OK;
}

/// `of_all_axes`: also of those of length 1, whose stride leads nowhere, but which a script may have read.
bool has_strides(const at::Tensor& tensor, const SavedInput& input, int64_t batch, bool of_all_axes = false) {
  for (std::size_t i = 0; i < input.strides.size(); ++i)
    if ((of_all_axes || tensor.size(static_cast<int64_t>(i)) != 1) &&
        tensor.stride(static_cast<int64_t>(i)) != input.strides[i].of(batch))
      return false;
  return true;
}

recording::Frame take_frame(Recorded& recorded) {
  const std::lock_guard<std::mutex> lock(recorded.mutex);
  if (recorded.idle.empty()) return recorded.tape.tape.frame();
  recording::Frame frame = std::move(recorded.idle.back());
  recorded.idle.pop_back();
  return frame;
}

void put_back(Recorded& recorded, recording::Frame&& frame) {
  recorded.tape.tape.clear(frame);
  const std::lock_guard<std::mutex> lock(recorded.mutex);
  recorded.idle.push_back(std::move(frame));
}

}  // namespace

RecordedCall::RecordedCall(const Settings& settings, RecordedFunction& function, Inputs inputs, Inputs targets)
    : settings_(settings), function_(function), frame_(function.frames) {
  frame_->begin(settings, function.writes);
  add(inputs, "input");
  add(targets, "target");
}

RecordedCall::RecordedCall(const Settings& settings, RecordedFunction& function, const recording::SavedArguments& given)
    : settings_(settings), function_(function), frame_(function.frames), is_of_fortran_(false) {
  for (const recording::SavedArgument& each : given) given_.push_back({each.value, each.name});
}

std::vector<std::size_t> RecordedCall::written(const RecordingState& state) {
  choose(state);
  std::vector<std::size_t> places;
  for (const std::size_t input : recorded_->tape.written_inputs) places.push_back(order_[input]);
  return places;
}

void RecordedCall::run(RecordingState& state, const CallSettings& settings) {
  choose(state);
  const SavedTape& tape = recorded_->tape;
  if (is_of_fortran_) {
    require_writable();
    require_flat(tape.result, function_.label);
  }
  const CallSettings::Hold settings_of_the_file(settings);
  recording::Frame frame = take_frame(*recorded_);
  for (std::size_t i = 0; i < tape.inputs.size(); ++i) set_input(frame, tape.inputs[i], i);
  std::optional<GraphRun> launched;
  if (settings_.place && settings_.place->is_cuda())
    launched = recorded_->graphs.run(tape, frame, numbers_, batch_, state.arrays());
  if (launched) {
    for (std::size_t i = 0; i < tape.gradients.size(); ++i)
      state.set_array(tape.gradients[i].first, launched->gradients[i]);
    tensors_ = std::move(launched->results);
  } else {
    if (!run_code(frame)) tape.tape.run(frame, numbers_, false, batch_);
    for (const auto& [name, slot] : tape.gradients)
      state.set_array(name, slot < 0 ? at::Tensor() : frame.slots[static_cast<std::size_t>(slot)].toTensor());
    for (const int32_t slot : tape.results) tensors_.push_back(frame.slots[static_cast<std::size_t>(slot)].toTensor());
  }
  for (const std::size_t input : tape.written_inputs) give_back(input);
  put_back(*recorded_, std::move(frame));
}

c10::IValue RecordedCall::result() const { return filled_result(recorded_->tape.result, tensors_); }

void RecordedCall::finish(at::ArrayRef<at::Tensor> results) {
  // what this call holds of its inputs is nothing that the recording has kept
  given_.clear();
  copies_.clear();
  frame_->finish(function_.label, results);
}

Training RecordedCall::trained() const {
  const SavedNode& result = recorded_->tape.result;
  if (result.items.size() != 2)
    fail(FPT_ERR_RESULT_TYPE, function_.label, " was recorded with a result that is no pair of a logical and a number");
  const auto number = [&](std::size_t i) { return number_in_result(result.items[i], tensors_, function_.label); };
  return {number(0).toBool(), number(1).toDouble()};
}

void RecordedCall::add(Inputs arguments, const char* what) {
  for (int32_t i = 0; i < arguments.count; ++i) {
    const fpt_arg& arg = arguments.args[i];
    const bool is_array = !is_value(arg);
    c10::IValue value = is_array ? c10::IValue(frame_->tensor(settings_, arg, what, i)) : value_of(arg);
    given_.push_back({std::move(value), arg.name, &arg, what, i, is_array && frame_->is_own_copy()});
  }
}

/// Places of the arguments in the order of a recording: those with names are found by them. False if they are others.
bool RecordedCall::set_order(const SavedTape& tape) {
  if (tape.inputs.size() != given_.size()) return false;
  order_.assign(given_.size(), given_.size());
  std::size_t next = 0;
  for (std::size_t i = 0; i < given_.size(); ++i) {
    std::size_t place = next;
    if (!given_[i].name.empty()) {
      const auto is_named = [&](const SavedInput& input) { return input.name == given_[i].name; };
      const auto found = std::find_if(tape.inputs.begin(), tape.inputs.end(), is_named);
      place = static_cast<std::size_t>(found - tape.inputs.begin());
    } else {
      while (next < order_.size() && order_[next] != given_.size()) ++next;
      place = next;
    }
    if (place >= order_.size() || order_[place] != given_.size()) return false;
    order_[place] = i;
  }
  return true;
}

/// Whether an argument fits, also beside those that are the same tensor in the recording.
fpt_status RecordedCall::fits(const SavedTape& tape, std::size_t place) {
  const SavedInput& input = tape.inputs[place];
  const fpt_status found = direct::fits(input, given_[order_[place]].value, tape.least, batch_);
  if (found != FPT_OK || !input.is_tensor) return found;
  for (std::size_t i = 0; i < place; ++i)
    if (tape.inputs[i].slot == input.slot && tape.inputs[i].is_tensor && !is_one_tensor(tensor(i), tensor(place)))
      return FPT_ERR_ARGUMENT;
  return FPT_OK;
}

/// Whether arguments that fit have its strides, too, and are one tensor only where they were when it was made.
bool RecordedCall::is_made_for(const SavedTape& tape, bool of_all_axes) const {
  for (std::size_t i = 0; i < order_.size(); ++i) {
    const SavedInput& input = tape.inputs[i];
    if (!input.is_tensor) continue;
    if (!has_strides(tensor(i), input, batch_, of_all_axes)) return false;
    for (std::size_t j = 0; j < i; ++j)
      if (tape.inputs[j].is_tensor && tape.inputs[j].slot != input.slot && is_one_tensor(tensor(i), tensor(j)))
        return false;
  }
  return true;
}

void RecordedCall::choose(const RecordingState& state) {
  fpt_status status = FPT_ERR_SIGNATURE;
  std::size_t furthest = 0;
  const char* other_way = nullptr;
  // one for other strides is the next best, first where they differ in axes of length 1 only
  enum class Strides { same, same_memory, any };
  for (const Strides strides : {Strides::same, Strides::same_memory, Strides::any})
    for (const auto& recorded : function_.recorded) {
      const SavedTape& tape = recorded->tape;
      if (!set_order(tape)) continue;
      batch_ = 0;
      fpt_status found = FPT_OK;
      std::size_t reached = 0;
      for (; reached < order_.size() && found == FPT_OK; ++reached) found = fits(tape, reached);
      if (found != FPT_OK) {
        // the one that was meant is that of which most fits
        if (reached > furthest) status = found, furthest = reached;
        continue;
      }
      if (strides != Strides::any && !is_made_for(tape, strides == Strides::same)) continue;
      numbers_.clear();
      for (const SavedNumber& each : tape.numbers) numbers_.push_back(each.value(state.numbers()));
      const auto branches = [this](const recording::Branch& branch) { return branch.holds(numbers_); };
      const auto gradients = [&state](const SavedGradient& gradient) { return gradient.holds(state.arrays()); };
      recorded_ = recorded.get();
      if (!std::all_of(tape.branches.begin(), tape.branches.end(), branches))
        other_way = "the step of an optimizer goes another way than it was recorded";
      else if (!std::all_of(tape.before.begin(), tape.before.end(), gradients))
        other_way = "gradients are not set as they were when it was recorded";
      else
        return;
    }
  if (other_way) fail(FPT_ERR_HOOK, function_.label, ": ", other_way);
  refuse(status);
}

void RecordedCall::refuse(fpt_status status) const {
  std::string given, there;
  for (const Given& each : given_) given += (given.empty() ? "" : ", ") + shown(each.value);
  for (const auto& each : function_.recorded) there += (there.empty() ? "" : "; ") + each->tape.described();
  const char* advice = status == FPT_ERR_DTYPE ? "; load(..., dtype=...) converts real arrays on their way in" : "";
  fail(status, function_.label, " is given ", given.empty() ? "nothing" : given, "; its recordings take: ", there,
       advice);
}

/// What the recording writes to must be described so.
void RecordedCall::require_writable() const {
  for (const std::size_t input : recorded_->tape.written_inputs) {
    const Given& given = given_[order_[input]];
    if (given.arg->access != FPT_OUT && given.arg->handle == 0 && !given.is_own_copy)
      refuse_change(argument_label(given.what, given.index, *given.arg), function_.label, "model");
  }
}

void RecordedCall::set_input(recording::Frame& frame, const SavedInput& input, std::size_t place) {
  if (!input.is_tensor) return;
  const c10::IValue& value = given_[order_[place]].value;
  const at::Tensor& tensor = value.toTensor();
  c10::IValue& slot = frame.slots[static_cast<std::size_t>(input.slot)];
  if (!slot.isNone()) return;  // the same tensor as an argument before
  if (has_strides(tensor, input, batch_)) {
    slot = value;
    return;
  }
  at::DimVector strides;
  for (const recording::Size& each : input.strides) strides.push_back(each.of(batch_));
  at::Tensor copy = at::empty_strided(tensor.sizes(), strides, tensor.options());
  copies_.emplace_back(place, copy.copy_(tensor));
  slot = std::move(copy);
}

/// Whether there is code for these arguments, which has filled the slots of what is computed then.
bool RecordedCall::run_code(recording::Frame& frame) {
  if (!recorded_->loader) return false;
  std::vector<at::Tensor> given = recorded_->tape.given(frame);
  if (given.empty()) return false;
  if (!numbers_.empty())
    given.push_back(at::from_blob(numbers_.data(), {static_cast<int64_t>(numbers_.size())}, at::kDouble));
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  const std::vector<at::Tensor> made = recorded_->loader->run(given);
  const std::vector<int32_t>& results = recorded_->tape.code->results;
  if (made.size() != results.size())
    fail(FPT_ERR_FORMAT, function_.label, " has code with ", made.size(), " results, and not ", results.size());
  for (std::size_t i = 0; i < results.size(); ++i) frame.slots[static_cast<std::size_t>(results[i])] = made[i];
  return true;
}

/// The recording has written an input below autograd, which counts nothing there.
void RecordedCall::give_back(std::size_t place) {
  const at::Tensor& tensor = given_[order_[place]].value.toTensor();
  const auto copy =
      std::find_if(copies_.begin(), copies_.end(), [place](const auto& each) { return each.first == place; });
  if (copy != copies_.end())
    tensor.copy_(copy->second);
  else if (!tensor.is_inference())
    tensor.unsafeGetTensorImpl()->bump_version();
}

}  // namespace fpt::direct
