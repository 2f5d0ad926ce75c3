// SPDX-License-Identifier: MIT
/// What the core reads from the values of the plug-in; here the test has written them. What needs the plug-in itself is
/// in test_direct_runner.cpp.
#include <cstring>

#include "direct/direct_answer.hpp"
#include "direct/direct_value.hpp"
#include "support.hpp"

namespace fpt {
namespace {

using test::named;
using test::out;

using Doubles = std::vector<double>;

/// An answer with these values.
struct Given {
  explicit Given(std::vector<fpt_direct_value> list, bool is_tuple = false) : values(std::move(list)) {
    *answer->raw() = {values.data(), nullptr, static_cast<int32_t>(values.size()), is_tuple};
  }
  std::vector<fpt_direct_value> values;
  std::shared_ptr<DirectAnswer> answer = std::make_shared<DirectAnswer>();
};

/// A tensor with its axes in the order of the model.
fpt_direct_value tensor(Doubles& memory, const std::vector<int64_t>& extents, const char* name = nullptr) {
  fpt_direct_value value{};
  set_memory(value, reversed(array_of(out(memory, std::vector<int64_t>(extents.rbegin(), extents.rend())))));
  value.kind = FPT_DIRECT_TENSOR;
  value.device_type = 1;
  value.name = name;
  return value;
}

template <class T>
fpt_direct_value number(T content, int32_t dtype) {
  fpt_direct_value value{};
  value.kind = FPT_DIRECT_NUMBER;
  value.dtype = dtype;
  std::memcpy(value.number, &content, sizeof content);
  return value;
}

TEST(DirectAnswer, BeforeACallHasNoResults) { EXPECT_EQ(DirectAnswer().list().count, 0); }

TEST(DirectAnswer, ListsNamesWhereThereAreSome) {
  Doubles x(2);
  const Given plain({tensor(x, {2}), tensor(x, {2})}, true), named({tensor(x, {2}, "flux"), tensor(x, {2}, "heat")});
  EXPECT_EQ(plain.answer->list().count, 2);
  EXPECT_TRUE(plain.answer->list().names.empty());
  EXPECT_TRUE(plain.answer->list().is_tuple);
  ASSERT_EQ(named.answer->list().names.size(), 2u);
  EXPECT_STREQ(named.answer->list().names[1], "heat");
  EXPECT_FALSE(named.answer->list().is_tuple);
}

TEST(DirectAnswer, NumbersAreThoseOfTheModel) {
  const Given given({number<uint8_t>(1, FPT_BOOL), number<int64_t>(-7, FPT_INT64), number(0.1, FPT_FLOAT64),
                     number(std::complex<double>(1, -2), FPT_COMPLEX128)});
  const auto scalar = [&](int32_t index) { return std::get<Scalar>(given.answer->value(index).content); };
  EXPECT_EQ(scalar(0), Scalar(true));
  EXPECT_EQ(scalar(1), Scalar(int64_t{-7}));
  EXPECT_EQ(scalar(2), Scalar(0.1));
  EXPECT_EQ(scalar(3), Scalar(std::complex<double>(1, -2)));
  EXPECT_STREQ(given.answer->value(3).type, "complex");
}

TEST(DirectAnswer, TextMayHoldAnyByte) {
  std::string text("west\0east", 9);
  fpt_direct_value value{};
  value.kind = FPT_DIRECT_TEXT;
  value.dtype = FPT_TEXT;
  value.data = text.data();
  value.length = 9;
  EXPECT_EQ(std::get<std::string_view>(std::get<Scalar>(Given({value}).answer->value(0).content)), text);
}

TEST(DirectAnswer, TensorsHaveTheirMemoryAndTheirPlace) {
  Doubles x(6);
  fpt_direct_value far = tensor(x, {2, 3});
  far.device_type = 2;
  far.device_index = 3;
  const Given given({tensor(x, {2, 3}), far});
  const Value here = given.answer->value(0), there = given.answer->value(1);
  EXPECT_EQ(here.array()->data, x.data());
  EXPECT_EQ(shape_text(*here.array()), "(2, 3)");
  EXPECT_TRUE(here.array()->device.is_host());
  EXPECT_TRUE((there.array()->device == Device{2, 3}));
  EXPECT_EQ(there.array()->data, x.data());
  EXPECT_STREQ(here.type, "Tensor");
}

TEST(DirectAnswer, LivesAsLongAsATensorOfIt) {
  Doubles x(6);
  Given given({tensor(x, {2, 3})});
  const std::weak_ptr<DirectAnswer> watched = given.answer;
  {
    const TensorPtr kept = given.answer->tensor(0, false, false);
    given.answer.reset();
    EXPECT_FALSE(watched.expired());
    EXPECT_EQ(shape_text(kept->array()), "(3, 2)") << "in Fortran order";
    EXPECT_TRUE(kept->is_plain_memory());
  }
  EXPECT_TRUE(watched.expired());
}

TEST(PlainTensor, IsCopiedAtOnce) {
  Doubles x = {1, 2, 3, 4, 5, 6}, y(6, -1);
  EXPECT_TRUE(Given({tensor(x, {2, 3})}).answer->copy_plain_tensor(out(y, {3, 2}), false));
  EXPECT_EQ(y, x);
  y.assign(6, -1);
  EXPECT_TRUE(Given({tensor(x, {2, 3})}).answer->copy_plain_tensor(out(y, {2, 3}), true));
  EXPECT_EQ(y, (Doubles{1, 4, 2, 5, 3, 6}));
  EXPECT_TRUE(Given({tensor(x, {6}, "low")}, true).answer->copy_plain_tensor(out(y), false)) << "a named tuple of one";
}

TEST(PlainTensor, IsNoOtherCase) {
  Doubles x = {1, 2}, y = {-1, -1};
  const auto copied = [&](const Given& given, const fpt_arg& output) {
    return given.answer->copy_plain_tensor(output, false);
  };
  fpt_direct_value far = tensor(x, {2});
  far.device_type = 2;
  EXPECT_FALSE(copied(Given({tensor(x, {2}), tensor(x, {2})}), out(y))) << "two results";
  EXPECT_FALSE(copied(Given(std::vector<fpt_direct_value>()), out(y))) << "none";
  EXPECT_FALSE(copied(Given({tensor(x, {2}, "flux")}), out(y))) << "a dict";
  EXPECT_FALSE(copied(Given({tensor(x, {2})}), named("flux", out(y)))) << "a named output";
  EXPECT_FALSE(copied(Given({far}), out(y))) << "on a device";
  EXPECT_FALSE(copied(Given({number(0.1, FPT_FLOAT64)}), out(y))) << "a number";
  EXPECT_FALSE(copied(Given({tensor(x, {1, 2})}), out(y))) << "another shape";
  EXPECT_EQ(y, (Doubles{-1, -1}));
}

}  // namespace
}  // namespace fpt
