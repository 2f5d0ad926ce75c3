// SPDX-License-Identifier: MIT
#include "ftr/call.hpp"

#include <ATen/ops/empty_strided.h>

#include <bit>

#include "ftr/memory.hpp"
#include "ftr/stored_tensor.hpp"

namespace ftr {
namespace {

// so that no size that follows from it overflows
constexpr int64_t largest_batch = int64_t{1} << 31;

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

std::string shown(const c10::IValue& given) { return given.isTensor() ? described(given.toTensor()) : concat(given); }

/// Whether an argument fits, and if not, why. `batch` is found out by the first size that tells it.
std::optional<Why> why_not(const SavedInput& input, const c10::IValue& given, int64_t least, int64_t& batch) {
  if (!input.is_tensor)
    return !given.isTensor() && is_equal(given, input.constant) ? std::nullopt : std::optional(Why::argument);
  if (!given.isTensor() || given.toTensor().scalar_type() != input.dtype) return Why::dtype;
  const at::IntArrayRef sizes = given.toTensor().sizes();
  if (sizes.size() != input.sizes.size()) return Why::shape;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const Size& size = input.sizes[i];
    if (size.factor != 0 && batch == 0) batch = (sizes[i] - size.offset) / size.factor;
    if (size.factor != 0 && (batch < least || batch > largest_batch)) return Why::shape;
    if (size.of(batch) != sizes[i]) return Why::shape;
  }
  return std::nullopt;
}

/// `of_all_axes`: also of those of length 1, whose stride leads nowhere, but which a script may have read.
bool has_strides(const at::Tensor& tensor, const SavedInput& input, int64_t batch, bool of_all_axes = false) {
  for (std::size_t i = 0; i < input.strides.size(); ++i)
    if ((of_all_axes || tensor.size(static_cast<int64_t>(i)) != 1) &&
        tensor.stride(static_cast<int64_t>(i)) != input.strides[i].of(batch))
      return false;
  return true;
}

Frame take_frame(Recording& recording) {
  const std::lock_guard<std::mutex> lock(recording.mutex);
  if (recording.idle.empty()) return recording.tape.tape.frame();
  Frame frame = std::move(recording.idle.back());
  recording.idle.pop_back();
  return frame;
}

void put_back(Recording& recording, Frame&& frame) {
  recording.tape.tape.clear(frame);
  const std::lock_guard<std::mutex> lock(recording.mutex);
  recording.idle.push_back(std::move(frame));
}

}  // namespace

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

Outcome outcome_in(const Frame& frame, const SavedTape& tape) {
  const auto in_slot = [&frame](int32_t slot) { return frame.slots[static_cast<std::size_t>(slot)].toTensor(); };
  Outcome made;
  made.results.reserve(tape.results.size());
  for (const int32_t slot : tape.results) made.results.push_back(in_slot(slot));
  made.gradients.reserve(tape.gradients.size());
  for (const auto& gradient : tape.gradients)
    made.gradients.push_back(gradient.second < 0 ? at::Tensor() : in_slot(gradient.second));
  return made;
}

/// Places of the arguments in the order of a recording: those with names are found by them. False if they are others.
bool Call::set_order(const SavedTape& tape) {
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
std::optional<Why> Call::why_not(const SavedTape& tape, std::size_t place) {
  const SavedInput& input = tape.inputs[place];
  const std::optional<Why> found = ftr::why_not(input, given_[order_[place]].value, tape.least, batch_);
  if (found || !input.is_tensor) return found;
  for (std::size_t i = 0; i < place; ++i)
    if (tape.inputs[i].slot == input.slot && tape.inputs[i].is_tensor && !is_one_tensor(tensor(i), tensor(place)))
      return Why::argument;
  return std::nullopt;
}

/// Whether arguments that fit have its strides, too, and are one tensor only where they were when it was made.
bool Call::is_made_for(const SavedTape& tape, bool of_all_axes) const {
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

void Call::choose(const State& state) {
  Why why = Why::signature;
  std::size_t furthest = 0;
  const char* other_way = nullptr;
  // one for other strides is the next best, first where they differ in axes of length 1 only
  enum class Strides { same, same_memory, any };
  for (const Strides strides : {Strides::same, Strides::same_memory, Strides::any})
    for (const auto& each : function_.recordings) {
      const SavedTape& tape = each->tape;
      if (!set_order(tape)) continue;
      batch_ = 0;
      std::optional<Why> found;
      std::size_t reached = 0;
      for (; reached < order_.size() && !found; ++reached) found = why_not(tape, reached);
      if (found) {
        // the one that was meant is that of which most fits
        if (reached > furthest) why = *found, furthest = reached;
        continue;
      }
      if (strides != Strides::any && !is_made_for(tape, strides == Strides::same)) continue;
      numbers_.clear();
      for (const SavedNumber& number : tape.numbers) numbers_.push_back(number.value(state.numbers()));
      const auto branches = [this](const Branch& branch) { return branch.holds(numbers_); };
      const auto gradients = [&state](const SavedGradient& gradient) { return gradient.holds(state.arrays()); };
      recording_ = each.get();
      if (!std::all_of(tape.branches.begin(), tape.branches.end(), branches))
        other_way = "the step of an optimizer goes another way than it was recorded";
      else if (!std::all_of(tape.before.begin(), tape.before.end(), gradients))
        other_way = "gradients are not set as they were when it was recorded";
      else
        return;
    }
  if (other_way) fail(Why::state, function_.label, ": ", other_way);
  refuse(why);
}

void Call::refuse(Why why) const {
  std::string given, there;
  for (const Given& each : given_) given += (given.empty() ? "" : ", ") + shown(each.value);
  for (const auto& each : function_.recordings) there += (there.empty() ? "" : "; ") + each->tape.described();
  fail(why, function_.label, " is given ", given.empty() ? "nothing" : given, "; its recordings take: ", there);
}

std::vector<std::size_t> Call::written() const {
  std::vector<std::size_t> places;
  for (const std::size_t input : recording_->tape.written_inputs) places.push_back(order_[input]);
  return places;
}

void Call::run(State& state, const CallSettings& settings) {
  const SavedTape& tape = recording_->tape;
  const CallSettings::Hold settings_of_the_file(settings);
  Frame frame = take_frame(*recording_);
  for (std::size_t i = 0; i < tape.inputs.size(); ++i) set_input(frame, tape.inputs[i], i);
  std::optional<Outcome> made;
  if (recording_->runner) made = recording_->runner->run(tape, frame, numbers_, batch_, state.arrays());
  if (!made) {
    tape.tape.run(frame, numbers_, false, batch_);
    made = outcome_in(frame, tape);
  }
  for (std::size_t i = 0; i < tape.gradients.size(); ++i)
    state.set_array(tape.gradients[i].first, std::move(made->gradients[i]));
  tensors_ = std::move(made->results);
  for (const std::size_t input : tape.written_inputs) give_back(input);
  put_back(*recording_, std::move(frame));
}

c10::IValue Call::result() const { return filled_result(recording_->tape.result, tensors_); }

void Call::forget() {
  given_.clear();
  copies_.clear();
}

at::DimVector Call::strides_of(const SavedInput& input) const {
  at::DimVector strides;
  for (const Size& each : input.strides) strides.push_back(each.of(batch_));
  return strides;
}

/// A copy of an argument does not show what is written through another one of its memory.
void Call::require_apart(std::size_t place) const {
  const SavedTape& tape = recording_->tape;
  const auto is_written = [&tape](std::size_t each) {
    return std::find(tape.written_inputs.begin(), tape.written_inputs.end(), each) != tape.written_inputs.end();
  };
  for (std::size_t i = 0; i < order_.size(); ++i) {
    if (!tape.inputs[i].is_tensor || tape.inputs[i].slot == tape.inputs[place].slot) continue;
    if ((!is_written(i) && !is_written(place)) || !may_overlap(tensor(i), tensor(place))) continue;
    const bool has_one_copy = is_one_tensor(tensor(i), tensor(place)) &&
                              !has_strides(tensor(i), tape.inputs[i], batch_) &&
                              strides_of(tape.inputs[i]) == strides_of(tape.inputs[place]);
    if (!has_one_copy)
      fail(Why::argument, function_.label,
           " is given two arrays that overlap, and writes one of them. They have other ",
           "strides than in its recordings, which would take copies: pass arrays that do not overlap");
  }
}

void Call::set_input(Frame& frame, const SavedInput& input, std::size_t place) {
  if (!input.is_tensor) return;
  const c10::IValue& value = given_[order_[place]].value;
  const at::Tensor& tensor = value.toTensor();
  c10::IValue& slot = frame.slots[static_cast<std::size_t>(input.slot)];
  if (!slot.isNone()) return;  // the same tensor as an argument before
  if (has_strides(tensor, input, batch_)) {
    slot = value;
    return;
  }
  require_apart(place);
  const at::DimVector strides = strides_of(input);
  const auto same = std::find_if(copies_.begin(), copies_.end(), [&](const auto& each) {
    return is_one_tensor(this->tensor(each.first), tensor) && each.second.strides() == strides;
  });
  at::Tensor copy =
      same != copies_.end() ? same->second : at::empty_strided(tensor.sizes(), strides, tensor.options()).copy_(tensor);
  copies_.emplace_back(place, copy);
  slot = std::move(copy);
}

/// The recording has written an input below autograd, which counts nothing there.
void Call::give_back(std::size_t place) {
  if (given_[order_[place]].is_read_only) return;
  const at::Tensor& tensor = given_[order_[place]].value.toTensor();
  const auto copy =
      std::find_if(copies_.begin(), copies_.end(), [place](const auto& each) { return each.first == place; });
  if (copy != copies_.end())
    tensor.copy_(copy->second);
  else if (!tensor.is_inference())
    tensor.unsafeGetTensorImpl()->bump_version();
}

}  // namespace ftr
