// SPDX-License-Identifier: MIT
/// Results of models as the library delivers them. Whole calls are in test_direct_runner.cpp.
#include <ATen/ops/from_blob.h>
#include <ATen/ops/tensor.h>

#include <thread>

#include "plugin/direct_answer.hpp"
#include "plugin/loaded.hpp"

namespace fpt::test {
namespace {

using direct::DirectAnswer;
using Doubles = std::vector<double>;

/// An answer with these results of a function.
std::shared_ptr<DirectAnswer> answer_of(c10::IValue value) {
  auto answer = std::make_shared<DirectAnswer>();
  answer->set(std::move(value), "f");
  return answer;
}

at::Tensor tensor(Doubles& memory, at::IntArrayRef sizes) { return at::from_blob(memory.data(), sizes, at::kDouble); }

c10::IValue pair(const c10::IValue& one, const c10::IValue& other) { return c10::ivalue::Tuple::create(one, other); }

std::shared_ptr<DirectAnswer> named_answer(std::vector<at::Tensor> tensors, std::vector<std::string> names) {
  auto answer = std::make_shared<DirectAnswer>();
  answer->set(std::move(tensors), std::move(names), "f");
  return answer;
}

TEST(DirectAnswer, BeforeACallHasNoResults) {
  EXPECT_EQ(DirectAnswer().list().count, 0);
  EXPECT_EQ(answer_of({})->list().count, 0) << "nor has None";
}

TEST(DirectAnswer, ListsNamesWhereThereAreSome) {
  Doubles x(2);
  const auto plain = answer_of(pair(tensor(x, {2}), tensor(x, {2}))),
             named = named_answer({tensor(x, {2}), tensor(x, {2})}, {"flux", "heat"});
  EXPECT_EQ(plain->list().count, 2);
  EXPECT_TRUE(plain->list().names.empty());
  EXPECT_TRUE(plain->list().is_tuple);
  ASSERT_EQ(named->list().names.size(), 2u);
  EXPECT_STREQ(named->list().names[1], "heat");
  EXPECT_FALSE(named->list().is_tuple);
}

TEST(DirectAnswer, NumbersAndTextsAreThoseOfTheModel) {
  const std::string text("west\0east", 9);  // may hold any byte
  const auto given = answer_of(
      c10::ivalue::Tuple::create(std::vector<c10::IValue>{true, int64_t{-7}, 0.1, c10::complex<double>(1, -2), text}));
  const auto scalar = [&](int32_t index) { return std::get<Scalar>(given->value(index).content); };
  EXPECT_EQ(scalar(0), Scalar(true));
  EXPECT_EQ(scalar(1), Scalar(int64_t{-7}));
  EXPECT_EQ(scalar(2), Scalar(0.1));
  EXPECT_EQ(scalar(3), Scalar(std::complex<double>(1, -2)));
  EXPECT_EQ(scalar(4), Scalar(std::string_view(text)));
  EXPECT_STREQ(given->value(3).type, "complex");
}

TEST(DirectAnswer, TensorsHaveTheirMemoryInTheOrderOfTheModel) {
  Doubles x(6);
  const Value here = answer_of(tensor(x, {2, 3}))->value(0);
  EXPECT_EQ(here.array()->data, x.data());
  EXPECT_EQ(shape_text(*here.array()), "(2, 3)");
  EXPECT_EQ(here.array()->strides[0], 24);
  EXPECT_TRUE(here.array()->device.is_host());
  EXPECT_STREQ(here.type, "Tensor");
}

TEST(DirectAnswer, LivesAsLongAsATensorOfIt) {
  Doubles x(6);
  auto answer = answer_of(tensor(x, {2, 3}));
  const std::weak_ptr<DirectAnswer> watched = answer;
  {
    const TensorPtr kept = answer->tensor(0, false, false);
    answer.reset();
    EXPECT_FALSE(watched.expired());
    EXPECT_EQ(shape_text(kept->array()), "(3, 2)") << "in Fortran order";
    EXPECT_TRUE(kept->is_plain_memory());
  }
  EXPECT_TRUE(watched.expired());
}

TEST(DirectAnswer, OutlivesItsModelAndItsThread) {
  std::shared_ptr<DirectAnswer> answer;
  std::vector<float> x = {1, 2};
  {
    Loaded model("weighted");
    std::thread([&] {
      EXPECT_OK(model.call(nullptr, {in(x)}));
      answer = std::move(model.answer);
    }).join();
  }
  ASSERT_EQ(answer->list().count, 1);
  EXPECT_EQ(static_cast<const float*>(answer->value(0).array()->data)[1], 4);
}

TEST(DirectAnswer, HalfPrecisionWidensOnItsWayToTheHost) {
  Loaded model("two");
  std::vector<float> x = {0.5f, 2};
  ASSERT_OK(model.call("half", {in(x)}));
  EXPECT_EQ(model.array().dtype, FPT_FLOAT16);
  const Array widened = model.answer->convertible(0);
  EXPECT_EQ(widened.dtype, FPT_FLOAT32);
  EXPECT_EQ(static_cast<float*>(widened.data)[1], 2);
  EXPECT_EQ(model.answer->convertible(0).data, widened.data) << "one copy for all who ask";
  EXPECT_EQ(model.answer->on_host(0).dtype, FPT_FLOAT16);
  EXPECT_EQ(model.array().dtype, FPT_FLOAT16) << "the result itself stays";
}

TEST(DirectAnswer, TensorIsCopiedToStridedMemory) {
  Doubles x = {1, 2}, y(4, 0);
  const auto answer = answer_of(tensor(x, {2}));
  answer->copy(*answer->value(0).array(), array_of(array_arg(y.data(), {2}, FPT_OUT, {16})));
  EXPECT_EQ(y, (Doubles{1, 0, 2, 0}));
}

TEST(DirectAnswer, ResultsThatFortranCannotHaveAreRefused) {
  Loaded model("two");
  std::vector<float> x = {1};
  EXPECT_FAILS(model.call("nested", {in(x)}), FPT_ERR_RESULT_TYPE,
               "result 2 of nested of two is a container inside another");
  ASSERT_OK(model.call("nothing", {in(x)}));
  EXPECT_EQ(model.answer->list().count, 0);
}

TEST(DirectAnswer, PendingConjugationsAreCarriedOut) {
  Loaded model("two");
  alignas(8) float memory[7] = {0, 1, 2, 3, 4, 5, 6};
  for (float* begin : {memory, memory + 1}) {  // complex arrays need not lie at multiples of their size
    ASSERT_OK(model.call("conjugate", {array_arg(reinterpret_cast<std::complex<float>*>(begin), {3})}));
    EXPECT_EQ(model.at<std::complex<float>>(2), std::complex<float>(begin[4], -begin[5]));
  }
}

TEST(PlainTensor, IsCopiedAtOnce) {
  Doubles x = {1, 2, 3, 4, 5, 6}, y(6, -1);
  EXPECT_TRUE(answer_of(tensor(x, {2, 3}))->copy_at_once(out(y, {3, 2}), false));
  EXPECT_EQ(y, x);
  y.assign(6, -1);
  EXPECT_TRUE(answer_of(tensor(x, {2, 3}))->copy_at_once(out(y, {2, 3}), true));
  EXPECT_EQ(y, (Doubles{1, 4, 2, 5, 3, 6}));
  const auto tuple = named_answer({tensor(x, {6})}, {"low"});
  tuple->set_is_tuple(true);
  EXPECT_TRUE(tuple->copy_at_once(out(y), false)) << "a named tuple of one";
}

TEST(PlainTensor, IsNoOtherCase) {
  Doubles x = {1, 2}, y = {-1, -1};
  const auto copied = [&](const std::shared_ptr<DirectAnswer>& given, const fpt_arg& output) {
    return given->copy_at_once(output, false);
  };
  EXPECT_FALSE(copied(answer_of(pair(tensor(x, {2}), tensor(x, {2}))), out(y))) << "two results";
  EXPECT_FALSE(copied(answer_of({}), out(y))) << "none";
  EXPECT_FALSE(copied(named_answer({tensor(x, {2})}, {"flux"}), out(y))) << "a dict";
  EXPECT_FALSE(copied(answer_of(tensor(x, {2})), named("flux", out(y)))) << "a named output";
  EXPECT_FALSE(copied(answer_of(0.1), out(y))) << "a number";
  EXPECT_FALSE(copied(answer_of(tensor(x, {1, 2})), out(y))) << "another shape";
  EXPECT_EQ(y, (Doubles{-1, -1}));
}

}  // namespace
}  // namespace fpt::test
