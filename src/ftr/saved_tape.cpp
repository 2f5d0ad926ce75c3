// SPDX-License-Identifier: MIT
#include "ftr/saved_tape.hpp"

#include <algorithm>
#include <unordered_map>

#include "ftr/named_operator.hpp"
#include "ftr/plain_values.hpp"
#include "ftr/saved_argument.hpp"
#include "ftr/trusting_kernels.hpp"

namespace ftr {
namespace {

constexpr int64_t most_slots = 10'000'000;
constexpr int deepest_result = 20;
constexpr const char* own_operator = "ftn_pytorch::all_reduce_mean";

void require_known_batch(bool has_size_of_it, bool has_batch) {
  if (has_size_of_it && !has_batch) fail(Why::format, "a size follows from that of a batch, and there is none");
}

/// Which slots hold something, call after call. Those of constants are the same in every run, so nothing replaces them.
///
/// They get new numbers without gaps: what a run takes follows from what a file holds, and not from what it says.
class Slots {
 public:
  explicit Slots(int64_t count) : count_(count) {}

  int32_t set_constant(int64_t slot) {
    const int32_t place = set(slot);
    slots_[slot].is_constant = true;
    return place;
  }
  int32_t set(int64_t slot) {
    if (slot < 0 || slot >= count_) fail(Why::format, "there is no slot ", slot);
    Slot& found = slots_.try_emplace(slot, Slot{static_cast<int32_t>(slots_.size()), false, false}).first->second;
    require_free(slot, found);
    found.is_set = true;
    return found.place;
  }
  int32_t require(int64_t slot) const {
    if (slot < 0 || slot >= count_) fail(Why::format, "there is no slot ", slot);
    const auto found = slots_.find(slot);
    if (found == slots_.end() || !found->second.is_set)
      fail(Why::format, "slot ", slot, " is used before anything is in it");
    return found->second.place;
  }
  int32_t take(int64_t slot) {
    const int32_t place = require(slot);
    require_free(slot, slots_[slot]);
    slots_[slot].is_set = false;
    return place;
  }
  /// How many a run needs.
  int32_t size() const noexcept { return static_cast<int32_t>(slots_.size()); }

 private:
  struct Slot {
    int32_t place;
    bool is_set, is_constant;
  };

  static void require_free(int64_t slot, const Slot& found) {
    if (found.is_constant) fail(Why::format, "slot ", slot, " is that of a constant, and would change");
  }

  int64_t count_;
  std::unordered_map<int64_t, Slot> slots_;
};

void place_formula(Formula& formula, const Slots& slots, std::size_t numbers) {
  for (Formula::Step& step : formula.steps) {
    if (step.code == Formula::Code::slot) step.index = slots.require(step.index);
    if (step.code == Formula::Code::number && (step.index < 0 || static_cast<std::size_t>(step.index) >= numbers))
      fail(Why::format, "there is no number ", step.index);
  }
}

void place_argument(Argument& argument, Slots& slots, std::size_t numbers, bool has_batch) {
  if (argument.kind == Argument::Kind::slot) argument.index = slots.require(argument.index);
  if (argument.kind == Argument::Kind::last) argument.index = slots.take(argument.index);
  for (int32_t& slot : argument.items)
    if (slot >= 0 || !argument.may_be_none) slot = slots.require(slot);
  for (Formula& each : argument.formulas) place_formula(each, slots, numbers);
  require_known_batch(argument.kind == Argument::Kind::fraction || !argument.sizes.empty(), has_batch);
}

const c10::FunctionSchema& own_schema() {
  static const auto& schema = *new c10::FunctionSchema(
      own_operator, "",
      {c10::Argument("x", c10::TensorType::get()), c10::Argument("communicator", c10::IntType::get())},
      {c10::Argument("", c10::TensorType::get())});
  return schema;
}

class TapeReader {
 public:
  TapeReader(const c10::IValue& described, const SavedContext& context)
      : described_(described), context_(context), slots_(count_of_slots()) {}

  SavedTape tape() {
    made_.has_batch = logical_in(entry("batch"), "\"batch\"");
    for (const c10::IValue& each : items("constants")) read_constant(each);
    for (const c10::IValue& each : items("inputs")) made_.inputs.push_back(input(each));
    for (const c10::IValue& each : items("numbers")) made_.numbers.push_back(number(each));
    for (const c10::IValue& each : items("branches")) made_.branches.push_back(branch(each));
    std::vector<Operation> operations;
    for (const c10::IValue& each : items("operations")) operations.push_back(operation(each));
    require_batch();
    for (const c10::IValue& each : items("before")) made_.before.push_back(gradient(each));
    for (const c10::IValue& each : items("results")) made_.results.push_back(set_slot(each));
    made_.result = node(entry("template"), 0);
    for (const c10::IValue& each : items("gradients")) {
      const std::vector<c10::IValue> pair = parts_in(each, 2, "a gradient");
      const bool is_gone = pair[1].isInt() && pair[1].toInt() == -1;
      made_.gradients.emplace_back(text_in(pair[0], "the name of a gradient"), is_gone ? -1 : set_slot(pair[1]));
    }
    for (const c10::IValue& each : items("written_inputs")) made_.written_inputs.push_back(place_of_input(each));
    // a gradient becomes an array of the state
    made_.writes = logical_in(entry("writes"), "\"writes\"") || !made_.gradients.empty();
    for (const auto& [slot, tensor] : constants_) made_.tensors.push_back(tensor);
    for (const SavedNumber& each : made_.numbers)
      if (each.counter.defined()) made_.tensors.push_back(each.counter);
    if (described_.toGenericDict().contains("code")) made_.code = code(entry("code"));
    made_.tape = Tape(slots_.size(), std::move(constants_), std::move(operations));
    return std::move(made_);
  }

 private:
  c10::IValue entry(const char* name) const { return entry_in(described_, name); }

  std::vector<c10::IValue> items(const char* name) const {
    return items_in(entry(name), concat('"', name, '"').c_str());
  }

  int64_t count_of_slots() const {
    const int64_t count = integer_in(entry("slots"), "\"slots\"");
    if (count < 0 || count > most_slots) fail(Why::format, "it has ", count, " slots");
    return count;
  }

  int32_t set_slot(const c10::IValue& value) const { return slots_.require(integer_in(value, "a slot")); }

  void read_constant(const c10::IValue& value) {
    const std::vector<c10::IValue> pair = parts_in(value, 2, "a constant");
    const int32_t slot = slots_.set_constant(integer_in(pair[0], "a slot"));
    constants_.emplace_back(slot, tensor_in(pair[1], "a constant"));
  }

  SavedGradient gradient(const c10::IValue& value) const {
    const std::vector<c10::IValue> pair = parts_in(value, 2, "a gradient");
    SavedGradient made{text_in(pair[0], "the name of a gradient"), {}};
    const int64_t slot = integer_in(pair[1], "a slot");
    if (slot == -1) return made;
    const int32_t wanted = slots_.require(slot);
    for (const auto& [place, tensor] : constants_)
      if (place == wanted) made.tensor = tensor;
    if (!made.tensor.defined()) fail(Why::format, "a gradient is no constant");
    return made;
  }

  SavedCode code(const c10::IValue& value) const {
    const std::vector<c10::IValue> described = parts_in(value, 4, "its code");
    SavedCode made{text_in(described[0], "the name of its code"), {}};
    CodeParts& parts = made.parts;
    for (const c10::IValue& each : items_in(described[1], "inputs of its code")) parts.inputs.push_back(set_slot(each));
    for (const c10::IValue& each : items_in(described[2], "memory of its code"))
      parts.memory.push_back(tensor_in(each, "memory of its code"));
    for (const c10::IValue& each : items_in(described[3], "results of its code"))
      parts.results.push_back(set_slot(each));
    parts.writes_memory = made_.writes, parts.writes_inputs = !made_.written_inputs.empty();
    return made;
  }

  SavedInput input(const c10::IValue& value) {
    const std::vector<c10::IValue> parts = parts_in(value, 3, "an input");
    SavedInput made;
    made.name = text_in(parts[0], "the name of an input");
    if (text_in(parts[1], "the kind of an input") == "value") {
      const bool is_plain = parts[2].isNone() || parts[2].isScalar() || parts[2].isString();
      if (!is_plain) fail(Why::format, "a constant input is no plain value");
      made.constant = parts[2];
      return made;
    }
    if (parts.size() != 6) fail(Why::format, "an input lacks its type, its sizes or its strides");
    made.is_tensor = true;
    made.slot = slots_.set(integer_in(parts[2], "a slot"));
    made.dtype = read_dtype(text_in(parts[3], "an element type"));
    made.sizes = read_sizes(parts[4]);
    made.strides = read_sizes(parts[5]);
    if (made.sizes.size() != made.strides.size()) fail(Why::format, "an input has other axes than strides");
    require_known_batch(follows_batch(made.sizes) || follows_batch(made.strides), made_.has_batch);
    return made;
  }

  static bool follows_batch(const std::vector<Size>& sizes) {
    return std::any_of(sizes.begin(), sizes.end(), [](const Size& size) { return size.factor != 0; });
  }

  void require_batch() {
    made_.least = integer_in(entry("least"), "\"least\"");
    if (made_.least < 1) fail(Why::format, "its least batch is ", made_.least);
    const auto tells = [](const SavedInput& input) { return follows_batch(input.sizes); };
    if (made_.has_batch && std::none_of(made_.inputs.begin(), made_.inputs.end(), tells))
      fail(Why::format, "no input tells the size of the batch");
  }

  SavedNumber number(const c10::IValue& value) const {
    const std::vector<c10::IValue> parts = parts_in(value, 2, "a number");
    SavedNumber made;
    if (text_in(parts[0], "the kind of a number") == "setting") {
      const std::string& name = text_in(parts[1], "the name of a number");
      const auto found = std::find(context_.numbers.begin(), context_.numbers.end(), name);
      if (found == context_.numbers.end())
        fail(Why::format, "it uses the number ", name.substr(0, 200), ", which the file does not have");
      made.setting = static_cast<std::size_t>(found - context_.numbers.begin());
      return made;
    }
    if (parts.size() != 3) fail(Why::format, "a count is no pair");
    made.counter = tensor_in(parts[1], "a counter");
    if (made.counter.numel() != 1) fail(Why::format, "a counter is not one number");
    made.ahead = real_in(parts[2], "a count");
    return made;
  }

  Branch branch(const c10::IValue& value) const {
    const std::vector<c10::IValue> parts = parts_in(value, 4, "a branch");
    const int64_t code = integer_in(parts[0], "a comparison");
    if (code < 0 || code > static_cast<int64_t>(Branch::Code::equal))
      fail(Why::format, "there is no comparison ", code);
    Branch made{static_cast<Branch::Code>(code), read_formula(parts[1]), read_formula(parts[2]),
                logical_in(parts[3], "the outcome of a comparison")};
    const Slots none(0);  // nothing has run yet
    place_formula(made.left, none, made_.numbers.size());
    place_formula(made.right, none, made_.numbers.size());
    return made;
  }

  Operation operation(const c10::IValue& value) {
    const std::vector<c10::IValue> parts = parts_in(value, 5, "an operation");
    const std::string& name = text_in(parts[0], "the name of an operator");
    const std::string& overload = text_in(parts[1], "the overload of an operator");
    made_.operators.push_back(concat(name, overload.empty() ? "" : ".", overload));
    try {
      Operation made;
      if (name == own_operator) {
        made.own = context_.all_reduce_mean;
        complete(made, own_schema(), {}, parts);
      } else {
        const NamedOperator of = named_operator(name, overload, text_in(parts[2], "the schema of an operator"));
        made.handle = of.handle;
        made.check = check_of(name);
        complete(made, of.handle.schema(), of.added, parts);
      }
      return made;
    } catch (const Refusal& refusal) {
      fail(refusal.why(), "operator ", name.substr(0, 200), ": ", refusal.what());
    }
  }

  static void add_defaults(Operation& made, const AddedArguments& added) {
    for (const c10::IValue& each : added.defaults) made.arguments.emplace_back().value = each;
  }

  void complete(Operation& made, const c10::FunctionSchema& schema, const AddedArguments& added,
                const std::vector<c10::IValue>& parts) {
    const std::vector<c10::IValue> arguments = items_in(parts[3], "the arguments of an operator");
    const std::vector<c10::IValue> results = items_in(parts[4], "the results of an operator");
    const std::size_t count = schema.arguments().size() - added.defaults.size();
    if (arguments.size() != count) fail(Why::format, "it is given ", arguments.size(), " arguments and takes ", count);
    if (results.size() > schema.returns().size())
      fail(Why::format, "it has ", schema.returns().size(), " results, and not ", results.size());
    for (std::size_t i = 0; i < count; ++i) {
      if (i == added.first) add_defaults(made, added);
      const std::size_t declared = i < added.first ? i : i + added.defaults.size();
      made.arguments.push_back(read_argument(arguments[i], schema.arguments()[declared], context_));
      place_argument(made.arguments.back(), slots_, made_.numbers.size(), made_.has_batch);
    }
    if (added.first >= count) add_defaults(made, added);
    for (const c10::IValue& each : results) {
      std::vector<int32_t> places;
      for (const c10::IValue& slot : items_in(each, "the slots of a result")) {
        const int64_t number = integer_in(slot, "a slot");
        places.push_back(number == -1 ? -1 : slots_.set(number));
      }
      made.results.push_back(std::move(places));
    }
  }

  SavedNode node(const c10::IValue& value, int depth) const {
    if (depth > deepest_result) fail(Why::format, "a result is nested too deeply");
    const std::vector<c10::IValue> parts = parts_in(value, 2, "a part of the result");
    const std::string& kind = text_in(parts[0], "the kind of a result");
    SavedNode made;
    if (kind == "tensor") {
      const int64_t place = integer_in(parts[1], "the place of a result");
      if (place < 0 || static_cast<std::size_t>(place) >= made_.results.size())
        fail(Why::format, "there is no result ", place);
      made.kind = SavedNode::Kind::tensor;
      made.tensor = static_cast<std::size_t>(place);
    } else if (kind == "value") {
      if (!parts[1].isNone() && !parts[1].isScalar() && !parts[1].isString())
        fail(Why::format, "a constant result is no plain value");
      made.value = parts[1];
    } else if (kind == "tuple" || kind == "list" || kind == "dict" || kind == "named") {
      made.kind = kind == "tuple"  ? SavedNode::Kind::tuple
                  : kind == "list" ? SavedNode::Kind::list
                  : kind == "dict" ? SavedNode::Kind::dict
                                   : SavedNode::Kind::named;
      const bool has_names = made.kind >= SavedNode::Kind::dict;
      if (has_names)
        for (const c10::IValue& each : items_in(parts[1], "names")) made.names.push_back(text_in(each, "a name"));
      const std::vector<c10::IValue> nodes = items_in(parts_in(value, has_names ? 3 : 2, "a result").back(), "results");
      for (const c10::IValue& each : nodes) made.items.push_back(node(each, depth + 1));
      if (has_names && made.names.size() != made.items.size()) fail(Why::format, "results lack names");
    } else {
      fail(Why::format, "there is no kind of result ", kind.substr(0, 100));
    }
    return made;
  }

  /// Among all inputs, of one among the tensors.
  std::size_t place_of_input(const c10::IValue& value) const {
    const int64_t place = integer_in(value, "the place of an input");
    int64_t tensors = 0;
    for (std::size_t i = 0; i < made_.inputs.size(); ++i)
      if (made_.inputs[i].is_tensor && tensors++ == place) return i;
    fail(Why::format, "there is no such input");
  }

  const c10::IValue& described_;
  const SavedContext& context_;
  Slots slots_;
  SavedTape made_;
  std::vector<std::pair<int32_t, at::Tensor>> constants_;
};

}  // namespace

SavedTape read_tape(const c10::IValue& described, const SavedContext& context) {
  try {
    return TapeReader(described, context).tape();
  } catch (const Refusal& refusal) {
    fail(refusal.why(), context.where, ": ", refusal.what());
  }
}

}  // namespace ftr
