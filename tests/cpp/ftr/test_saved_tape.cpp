// SPDX-License-Identifier: MIT
/// A tape of a file is understood as it was written, and refused if anything in it is wrong.
#include <ATen/ops/ones.h>

#include <cstdlib>
#include <functional>

#include "ftr/content.hpp"
#include "ftr/outcome.hpp"
#include "ftr/plain_values.hpp"
#include "ftr/saved_tape.hpp"

namespace ftr {
namespace {

using c10::IValue;
using test::outcome_of;

const std::vector<std::string> names = {"opt.0.lr", "opt.0.betas.1"};

IValue tuple(std::vector<IValue> items) { return c10::ivalue::Tuple::create(std::move(items)); }
IValue list(const std::vector<IValue>& items) {
  c10::impl::GenericList made(c10::AnyType::get());
  for (const IValue& each : items) made.push_back(each);
  return made;
}
IValue text(const char* words) { return std::string(words); }
IValue whole(int64_t number) { return number; }

/// The tape of make_archives.py.
IValue tape() {
  const std::string file = std::string(std::getenv("FPT_TEST_ARCHIVES")) + "/python.ftr";
  const IValue functions = entry_in(read_content(file).recording, "functions");
  return items_in(entry_in(functions, "ftn_pytorch_forward"), "tapes").at(0);
}

IValue with(const IValue& dict, const char* name, const IValue& value) {
  c10::impl::GenericDict made(c10::AnyType::get(), c10::AnyType::get());
  for (const auto& entry : dict.toGenericDict()) made.insert(entry.key(), entry.value());
  made.insert_or_assign(IValue(name), value);
  return made;
}

IValue without(const IValue& dict, const char* name) {
  c10::impl::GenericDict made(c10::AnyType::get(), c10::AnyType::get());
  for (const auto& entry : dict.toGenericDict())
    if (entry.key().toStringRef() != name) made.insert(entry.key(), entry.value());
  return made;
}

SavedTape read(const IValue& described) {
  return read_tape(described, {"a function of a file", names, at::kCPU, [](torch::jit::Stack&) {}});
}

test::Outcome outcome(const IValue& described) {
  return outcome_of([&] { (void)read(described); });
}

/// An operation of the tape in another form.
IValue with_operation(std::size_t place, std::size_t part, const IValue& value) {
  const IValue whole_tape = tape();
  std::vector<IValue> operations = items_in(entry_in(whole_tape, "operations"), "operations");
  std::vector<IValue> parts = items_in(operations.at(place), "an operation");
  parts.at(part) = value;
  operations.at(place) = tuple(parts);
  return with(whole_tape, "operations", list(operations));
}

IValue with_argument(std::size_t place, std::size_t argument, const IValue& value) {
  std::vector<IValue> operations = items_in(entry_in(tape(), "operations"), "operations");
  std::vector<IValue> arguments = items_in(items_in(operations.at(place), "an operation").at(3), "arguments");
  arguments.at(argument) = value;
  return with_operation(place, 3, list(arguments));
}

TEST(SavedTape, IsUnderstood) {
  const SavedTape made = read(tape());
  EXPECT_TRUE(made.has_batch);
  EXPECT_TRUE(made.writes);  // it has gradients, whatever it says
  EXPECT_EQ(made.described(), "x float32 (B, 3), a constant = 2.5");
  ASSERT_EQ(made.inputs.size(), 2u);
  EXPECT_EQ(made.results, (std::vector<int32_t>{15, 11}));
  EXPECT_EQ(made.result.names, (std::vector<std::string>{"sum", "filled"}));
  EXPECT_EQ(made.gradients.at(0), (std::pair<std::string, int32_t>("net/0.weight (its gradient)", 8)));
  EXPECT_EQ(made.numbers.at(0).value({0.25, 1}), 0.25);
  EXPECT_EQ(made.numbers.at(1).value({}), 16);  // the sum of 0 to 5, and 1
  EXPECT_TRUE(made.branches.at(0).holds({1e-3, 16}));
  EXPECT_FALSE(made.branches.at(0).holds({1e-2, 16}));
}

TEST(SavedTape, GradientsAreThereAsTheyWere) {
  const SavedTape made = read(tape());
  ASSERT_EQ(made.before.size(), 2u);
  const at::Tensor weight = made.before[0].tensor;
  const std::string first = "net/0.weight (its gradient)", second = "net/0.bias (its gradient)";
  EXPECT_TRUE(made.before[0].holds({{first, weight.detach()}}));
  EXPECT_FALSE(made.before[0].holds({{first, weight.clone()}}));
  EXPECT_FALSE(made.before[0].holds({{second, weight}}));
  EXPECT_TRUE(made.before[1].holds({{first, weight}}));
  EXPECT_FALSE(made.before[1].holds({{second, weight}}));
}

TEST(SavedTape, RunsWithAnyBatch) {
  const SavedTape made = read(tape());
  for (const int64_t batch : {1, 4, 33}) {
    Frame frame = made.tape.frame();
    const auto in_slot = [&frame](int32_t slot) -> IValue& { return frame.slots[static_cast<std::size_t>(slot)]; };
    in_slot(made.inputs[0].slot) = at::ones({batch, 3});
    made.tape.run(frame, {0.5, 16}, false, batch);
    const at::Tensor sum = in_slot(made.results[0]).toTensor(), filled = in_slot(made.results[1]).toTensor();
    // m = ones @ constant; v = (2 lr + 1) m / (3 B), w = v * 2 / B; the first of the halves of cat(v, w) is v
    const at::Tensor row = at::ones({1, 3}).mm(made.tensors[0]);
    EXPECT_NEAR(sum.item<float>(), 2 * row.sum().item<float>() / 3, 1e-4) << batch;
    EXPECT_EQ(filled[1].item<float>(), static_cast<float>(batch + 1));
  }
}

TEST(SavedTape, WhatIsMissingIsNamed) {
  for (const char* name : {"batch", "least", "inputs", "slots", "constants", "operations", "results", "template",
                           "numbers", "branches", "before", "gradients", "writes", "written_inputs"})
    EXPECT_FAILS(outcome(without(tape(), name)), FPT_ERR_FORMAT, concat("there is no \"", name, "\""));
  EXPECT_FAILS(outcome(list({})), FPT_ERR_FORMAT, "is no dict");
}

TEST(SavedTape, OtherEntriesAreRefused) {
  const IValue good = tape();
  const auto formula = [](std::vector<IValue> steps) { return list(steps); };
  const auto step = [](int64_t code, const IValue& what) { return tuple({code, what}); };
  const std::vector<std::tuple<const char*, IValue, const char*>> cases = {
      {"batch", whole(1), "is no logical"},
      {"batch", false, "and there is none"},
      {"least", whole(0), "its least batch is 0"},
      {"slots", whole(-1), "it has -1 slots"},
      {"slots", whole(int64_t{1} << 40), "slots"},
      {"slots", whole(3), "there is no slot"},
      {"constants", list({tuple({whole(1), whole(2)})}), "a constant is no tensor"},
      {"constants", list({}), "slot 1 is used before anything is in it"},
      {"inputs", list({}), "slot 0 is used before anything is in it"},
      {"inputs", list({tuple({text("x"), text("tensor"), whole(0)})}), "an input lacks its type"},
      {"inputs", list({tuple({text("x"), text("value"), list({})})}), "no plain value"},
      {"inputs", list({tuple({text("x"), text("tensor"), whole(0), text("float33"), list({}), list({})})}),
       "there is no element type float33"},
      {"inputs",
       list({tuple(
           {text("x"), text("tensor"), whole(0), text("float32"), list({tuple({whole(0), whole(2)})}), list({})})}),
       "other axes than strides"},
      {"inputs",
       list({tuple({text("x"), text("tensor"), whole(0), text("float32"), list({tuple({whole(1), whole(INT64_MAX)})}),
                    list({tuple({whole(0), whole(1)})})})}),
       "a size is out of range"},
      {"results", list({whole(16)}), "there is no slot 16"},
      {"results", list({whole(3)}), "slot 3 is used"},
      {"template", tuple({text("tensor"), whole(2)}), "there is no result 2"},
      {"template", tuple({text("code"), whole(2)}), "there is no kind of result code"},
      {"template", tuple({text("value"), at::ones({1})}), "no plain value"},
      {"template", tuple({text("dict"), list({text("a")}), list({})}), "results lack names"},
      {"numbers", list({tuple({text("setting"), text("lr")})}), "it uses the number lr"},
      {"numbers", list({tuple({text("count"), at::ones({2}), whole(1)})}), "a counter is not one number"},
      {"numbers", list({tuple({text("count"), at::ones({1})})}), "a count is no pair"},
      {"branches", list({tuple({whole(3), formula({}), formula({}), true})}), "there is no comparison 3"},
      {"branches", list({tuple({whole(0), formula({}), formula({}), true})}), "a formula gives 0 numbers"},
      {"branches", list({tuple({whole(0), formula({step(3, whole(0))}), formula({}), true})}), "computes with nothing"},
      {"branches", list({tuple({whole(0), formula({step(9, whole(0))}), formula({}), true})}), "a step of kind 9"},
      {"branches", list({tuple({whole(0), formula({step(1, whole(0))}), formula({step(2, 1.0)}), true})}),
       "there is no slot 0"},
      {"branches", list({tuple({whole(0), formula({step(0, whole(2))}), formula({step(2, 1.0)}), true})}),
       "there is no number 2"},
      {"before", list({tuple({text("a")})}), "a gradient is no tuple of"},
      {"before", list({tuple({text("a"), whole(0)})}), "a gradient is no constant"},
      {"gradients", list({tuple({text("a"), whole(16)})}), "there is no slot 16"},
      {"written_inputs", list({whole(1)}), "there is no such input"},
      {"written_inputs", list({whole(INT64_MIN)}), "there is no such input"}};
  for (const auto& [name, value, reason] : cases)
    EXPECT_FAILS(outcome(with(good, name, value)), FPT_ERR_FORMAT, reason);
  IValue deep = tuple({text("tensor"), whole(0)});
  for (int i = 0; i < 30; ++i) deep = tuple({text("tuple"), list({deep})});
  EXPECT_FAILS(outcome(with(good, "template", deep)), FPT_ERR_FORMAT, "nested too deeply");
}

TEST(SavedTape, OtherOperatorsAreRefused) {
  EXPECT_FAILS(outcome(with_operation(0, 0, text("aten::mmm"))), FPT_ERR_FORMAT, "which this torch lacks");
  EXPECT_FAILS(outcome(with_operation(0, 0, text("aten::from_file"))), FPT_ERR_FORMAT, "may not call");
  EXPECT_FAILS(outcome(with_operation(0, 0, text("mkldnn::_linear_pointwise"))), FPT_ERR_FORMAT, "may not call");
  EXPECT_FAILS(outcome(with_operation(0, 2, text("aten::mm(Tensor self) -> Tensor"))), FPT_ERR_FORMAT,
               "write the file again with this torch");
  EXPECT_FAILS(outcome(with_operation(0, 3, list({}))), FPT_ERR_FORMAT, "it is given 0 arguments and takes 2");
  EXPECT_FAILS(outcome(with_operation(0, 4, list({list({}), list({})}))), FPT_ERR_FORMAT, "it has 1 results");
  EXPECT_FAILS(outcome(with_operation(0, 4, list({list({whole(16)})}))), FPT_ERR_FORMAT, "there is no slot 16");
}

TEST(SavedTape, OtherArgumentsAreRefused) {
  const IValue sizes = list({tuple({whole(1), whole(0)})});
  const std::vector<std::tuple<std::size_t, std::size_t, IValue, const char*>> cases = {
      {0, 0, tuple({text("slot"), whole(-1)}), "there is no slot -1"},
      {0, 0, tuple({text("slot"), whole(16)}), "there is no slot 16"},
      {0, 0, tuple({text("slot"), whole(5)}), "slot 5 is used before"},
      {0, 0, tuple({text("slot"), text("0")}), "a slot is no integer"},
      {0, 0, tuple({text("code"), whole(0)}), "there is no kind of argument code"},
      {0, 0, tuple({text("value"), text("x")}), "its argument self is not of type Tensor"},
      {0, 0, tuple({text("list"), list({whole(0)})}), "its argument self is not of type Tensor"},
      {1, 1, tuple({text("slot"), whole(0)}), "its argument size is not of type"},
      {1, 1, tuple({text("sizes"), list({tuple({whole(1)})})}), "a size"},
      {1, 1, tuple({text("value"), list({text("x")})}), "an item of a list is no integer"},
      {2, 1, tuple({text("sizes"), sizes}), "its argument other is not of type"},
      {2, 1, tuple({text("number"), list({})}), "a formula gives 0 numbers"},
      {2, 1, tuple({text("numbers"), list({})}), "its argument other is not of type"},
      {4, 1, tuple({text("size"), whole(1)}), "a size is no pair"},
      {6, 0, tuple({text("list"), list({whole(-1)})}), "there is no slot -1"},
      {6, 1, tuple({text("real"), whole(1), whole(0)}), "its argument dim is not of type"},
      {7, 1, tuple({text("dtype"), text("float33")}), "there is no element type"},
      {7, 1, tuple({text("device"), text("cpu")}), "its argument dtype is not of type"},
      {7, 2, tuple({text("layout"), text("sparse")}), "there is no layout sparse"},
      {7, 5, tuple({text("memory_format"), text("x")}), "there is no memory format x"},
      {8, 4, tuple({text("device"), text("nowhere")}), "there is no device nowhere"},
      {8, 1, tuple({text("complex"), 1.0}), "tuple"}};
  for (const auto& [place, argument, value, reason] : cases)
    EXPECT_FAILS(outcome(with_argument(place, argument, value)), FPT_ERR_FORMAT, reason);
}

}  // namespace
}  // namespace ftr
