// SPDX-License-Identifier: MIT
/// Slots of a tape of a file: what a call has taken is gone, constants stay, and the size of a batch has a source.
#include <ATen/ops/ones.h>

#include "ftr/outcome.hpp"
#include "ftr/saved_tape.hpp"

namespace ftr::tape_slots {
namespace {

using c10::IValue;
using test::outcome_of;

IValue tuple(std::vector<IValue> items) { return c10::ivalue::Tuple::create(std::move(items)); }
IValue list(const std::vector<IValue>& items) {
  c10::impl::GenericList made(c10::AnyType::get());
  for (const IValue& each : items) made.push_back(each);
  return made;
}
IValue text(const char* words) { return std::string(words); }
IValue whole(int64_t number) { return number; }
IValue slot(const char* kind, int64_t number) { return tuple({text(kind), whole(number)}); }

/// x of two numbers in slot 0, a constant in slot 1, their matrix product in a slot of choice.
struct Described {
  IValue first = slot("last", 0), second = slot("slot", 1);
  int64_t made = 2, slots = 3;
  bool has_batch = false;
  IValue size = tuple({whole(0), whole(2)});
  std::vector<IValue> gradients, others;

  SavedTape read() const {
    const IValue axes = list({size, tuple({whole(0), whole(2)})});
    const IValue strides = list({tuple({whole(0), whole(2)}), tuple({whole(0), whole(1)})});
    const IValue input = tuple({text("x"), text("tensor"), whole(0), text("float32"), axes, strides});
    const IValue product = tuple({text("aten::mm"), text(""), text("aten::mm(Tensor self, Tensor mat2) -> Tensor"),
                                  list({first, second}), list({list({whole(made)})})});
    c10::impl::GenericDict tape(c10::StringType::get(), c10::AnyType::get());
    tape.insert("batch", has_batch);
    tape.insert("least", whole(1));
    std::vector<IValue> inputs = {input};
    inputs.insert(inputs.end(), others.begin(), others.end());
    tape.insert("inputs", list(inputs));
    tape.insert("slots", whole(slots));
    tape.insert("constants", list({tuple({whole(1), at::ones({2, 2})})}));
    tape.insert("operations", list({product}));
    tape.insert("results", list({whole(made)}));
    tape.insert("template", tuple({text("tensor"), whole(0)}));
    tape.insert("numbers", list({}));
    tape.insert("branches", list({}));
    tape.insert("before", list({}));
    tape.insert("gradients", list(gradients));
    tape.insert("written_inputs", list({}));
    tape.insert("writes", false);
    return read_tape(tape, {"a function", {}, at::kCPU, [](torch::jit::Stack&) {}});
  }
  test::Outcome outcome() const {
    return outcome_of([this] { (void)read(); });
  }
};

IValue& input_of(const SavedTape& made, Frame& frame) {
  return frame.slots[static_cast<std::size_t>(made.inputs[0].slot)];
}

TEST(SavedTapeSlots, ARunTakesWhatTheFileHoldsWhateverItSays) {
  Described described;
  described.slots = 10'000'000;
  described.made = 9'999'999;
  EXPECT_EQ(described.read().tape.frame().slots.size(), 3U);
}

TEST(SavedTapeSlots, ARunIsTheSameEachTime) {
  const SavedTape made = Described().read();
  Frame frame = made.tape.frame();
  IValue &input = input_of(made, frame), &result = frame.slots[static_cast<std::size_t>(made.results[0])];
  for (int run = 0; run < 2; ++run) {
    input = at::ones({2, 2});
    made.tape.run(frame, {}, false);
    EXPECT_EQ(result.toTensor().sum().item<float>(), 8);
    made.tape.clear(frame);
    EXPECT_TRUE(input.isNone() && result.isNone());
  }
}

TEST(SavedTapeSlots, WhatACallHasTakenIsGone) {
  Described described;
  described.second = slot("slot", 0);
  EXPECT_FAILS(described.outcome(), FPT_ERR_FORMAT, "slot 0 is used before anything is in it");
  described.first = slot("slot", 0);
  described.second = slot("last", 0);
  EXPECT_EQ(described.outcome().status, FPT_OK);
}

TEST(SavedTapeSlots, ConstantsStay) {
  Described described;
  described.second = slot("last", 1);
  EXPECT_FAILS(described.outcome(), FPT_ERR_FORMAT, "slot 1 is that of a constant");
  described = {};
  described.made = 1;
  EXPECT_FAILS(described.outcome(), FPT_ERR_FORMAT, "slot 1 is that of a constant");
}

TEST(SavedTapeSlots, InputsOfOneSlotAreOneTensor) {
  Described described;
  const IValue axis = list({tuple({whole(0), whole(2)})}), stride = list({tuple({whole(0), whole(1)})});
  described.others = {tuple({text("y"), text("tensor"), whole(0), text("float32"), axis, stride})};
  EXPECT_EQ(described.read().described(), "x float32 (2, 2), y the same tensor as x");
}

TEST(SavedTapeSlots, WhatATensorIsGivenAsNoneIsUndefined) {
  Described described;
  described.second = tuple({text("value"), IValue()});
  const SavedTape made = described.read();
  Frame frame = made.tape.frame();
  input_of(made, frame) = at::ones({2, 2});
  EXPECT_THROW(made.tape.run(frame, {}, false), c10::Error);
}

TEST(SavedTapeSlots, TheBatchFollowsFromAnInput) {
  Described described;
  described.has_batch = true;
  EXPECT_FAILS(described.outcome(), FPT_ERR_FORMAT, "no input tells the size of the batch");
  described.size = tuple({whole(1), whole(0)});
  EXPECT_TRUE(described.read().has_batch);
}

TEST(SavedTapeSlots, AGradientIsAChangeOfTheState) {
  Described described;
  EXPECT_FALSE(described.read().writes);
  described.gradients = {tuple({text("net/0.weight (its gradient)"), whole(2)})};
  EXPECT_TRUE(described.read().writes);
}

}  // namespace
}  // namespace ftr::tape_slots
