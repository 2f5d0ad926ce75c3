// SPDX-License-Identifier: MIT
/// One value into one variable. What scripts return in place of these values is in script/test_script_answer.cpp.
#include <cmath>
#include <limits>

#include "arrays/fit.hpp"
#include "support.hpp"

namespace fpt {
namespace {

using test::in;
using test::out;

using Doubles = std::vector<double>;

template <class T>
test::Outcome fit(const Scalar& value, T& variable) {
  return test::outcome_of([&] { fit_scalar(value, out(variable), "the value").run(); });
}

/// Memory as a result, with its axes in the order of Fortran.
template <class T>
Array memory(std::vector<T>& values, const std::vector<int64_t>& extents, const std::vector<int64_t>& strides = {},
             std::size_t offset = 0) {
  return array_of(test::array_arg(values.data() + offset, extents, FPT_OUT, strides));
}

template <class T>
test::Outcome fit(const Array& array, T& values, const std::vector<int64_t>& extents, bool cast = false) {
  return test::outcome_of([&] { fit_array(array, "Tensor", out(values, extents), true, cast, "the value").run(); });
}

TEST(FitScalar, NumbersGoIntoEveryWidthThatHoldsThem) {
  int8_t small = 0;
  float single = 0;
  std::complex<float> number = 0;
  EXPECT_OK(fit(int64_t{-128}, small));
  EXPECT_EQ(small, -128);
  EXPECT_OK(fit(0.1, single));
  EXPECT_EQ(single, 0.1f);
  EXPECT_OK(fit(int64_t{3}, single));
  EXPECT_EQ(single, 3);
  EXPECT_OK(fit(std::complex<double>(1, 2), number));
  EXPECT_EQ(number, std::complex<float>(1, 2));
}

TEST(FitScalar, NumbersOutOfRangeAreRefused) {
  int8_t small = 5;
  float single = 5;
  EXPECT_FAILS(fit(int64_t{128}, small), FPT_ERR_DTYPE, "an integer too large for integer(int8)");
  EXPECT_FAILS(fit(int64_t{-129}, small), FPT_ERR_DTYPE, "too large");
  for (const double number : {1e39, -1e39})
    EXPECT_FAILS(fit(number, single), FPT_ERR_DTYPE, "a number too large for real(real32)");
  std::complex<float> number = 5;
  for (const std::complex<double> value : {std::complex<double>(0, -1e39), {-1e39, 0}, {1e39, 0}})
    EXPECT_FAILS(fit(value, number), FPT_ERR_DTYPE, "too large");
  EXPECT_EQ(small, 5);
  EXPECT_EQ(single, 5);
  EXPECT_OK(fit(std::numeric_limits<double>::infinity(), single));
  EXPECT_TRUE(std::isinf(single));
}

TEST(FitScalar, NoPartOfANumberIsDropped) {
  double real = 0;
  int32_t integer = 0;
  bool flag = false;
  EXPECT_FAILS(fit(std::complex<double>(1, 0), real), FPT_ERR_DTYPE, "is of type complex");
  EXPECT_FAILS(fit(1.0, integer), FPT_ERR_DTYPE, "is of type float, but the variable is integer(int32)");
  EXPECT_FAILS(fit(int64_t{1}, flag), FPT_ERR_DTYPE, "is of type int");
  EXPECT_FAILS(fit(true, integer), FPT_ERR_DTYPE, "is of type bool");
}

TEST(FitScalar, TextIsPaddedAndNeverCut) {
  std::string text = "xxxxxx";
  EXPECT_OK(fit(std::string_view("west"), text));
  EXPECT_EQ(text, "west  ");
  EXPECT_FAILS(fit(std::string_view("longest"), text), FPT_ERR_SHAPE,
               "a string of 7 bytes, but the variable has room for 6");
  EXPECT_FAILS(fit(1.0, text), FPT_ERR_DTYPE, "character variable");
  double real = 0;
  EXPECT_FAILS(fit(std::string_view("1"), real), FPT_ERR_DTYPE, "is a string");
}

TEST(FitScalar, IsNotSpreadOverAnArray) {
  Doubles array(3);
  EXPECT_FAILS(test::outcome_of([&] { fit_scalar(1.0, out(array), "the value"); }), FPT_ERR_SHAPE,
               "a single number, but the output is an array of shape (3,)");
}

TEST(Fit, OnlyOutputsReceive) {
  Doubles array(3);
  EXPECT_FAILS(test::outcome_of([&] { fit_scalar(1.0, in(array), "the value"); }), FPT_ERR_ARGUMENT, "use torch_out");
  const fpt_arg none = test::array_arg<double>(nullptr, {3}, FPT_OUT);
  EXPECT_FAILS(test::outcome_of([&] { fit_scalar(1.0, none, "the value"); }), FPT_ERR_UNALLOCATED, "the output");
}

TEST(FitArray, HasTheShapeOfItsOutput) {
  Doubles source = {1, 2, 3, 4, 5, 6}, target(6);
  EXPECT_OK(fit(memory(source, {2, 3}), target, {2, 3}));
  EXPECT_EQ(target, source);
  for (const std::vector<int64_t>& extents : std::vector<std::vector<int64_t>>{{3, 2}, {6}, {2, 3, 1}, {1, 3}})
    EXPECT_FAILS(fit(memory(source, {2, 3}), target, extents), FPT_ERR_SHAPE, "nothing is broadcast or squeezed");
}

TEST(FitArray, ReversesTheAxesOfTheScript) {
  Doubles source = {1, 2, 3, 4, 5, 6}, target(6);
  fit_array(memory(source, {2, 3}, {24, 8}), "Tensor", out(target, {3, 2}), false, false, "the value").run();
  EXPECT_EQ(target, source) << "(2, 3) in C order is (3, 2) in Fortran order";
  EXPECT_FAILS(test::outcome_of([&] {
                 fit_array(memory(source, {2, 3}), "Tensor", out(target, {2, 3}), false, false, "the value");
               }),
               FPT_ERR_SHAPE, "has shape (2, 3), but the output needs (3, 2), which is (2, 3) in Fortran");
}

TEST(FitArray, IsNoScalar) {
  Doubles source = {1};
  double target = 0;
  EXPECT_FAILS(
      test::outcome_of([&] { fit_array(memory(source, {1}), "Tensor", out(target), false, false, "the value"); }),
      FPT_ERR_SHAPE, "has shape (1,), but the variable is a scalar: receive an array, or return a number");
}

TEST(FitArray, WidensUnaskedAndNarrowsWhereThatIsAllowed) {
  std::vector<float> single = {0.5f, 2}, narrow(2);
  Doubles wide(2);
  EXPECT_OK(fit(memory(single, {2}), wide, {2}));
  EXPECT_EQ(wide, (Doubles{0.5, 2}));
  EXPECT_FAILS(fit(memory(wide, {2}), narrow, {2}), FPT_ERR_DTYPE, "only with cast=.true.");
  EXPECT_OK(fit(memory(wide, {2}), narrow, {2}, true));
  EXPECT_EQ(narrow, single);
  std::vector<int32_t> integers(2);
  EXPECT_FAILS(fit(memory(wide, {2}), integers, {2}, true), FPT_ERR_DTYPE, "no conversion between these types");
}

TEST(FitArray, NarrowsIntegersOnlyWhereNoneIsTooLarge) {
  std::vector<int64_t> wide = {-128, 127, 1000, -1000};
  std::vector<int8_t> narrow(2, 7);
  EXPECT_OK(fit(memory(wide, {2}), narrow, {2}, true));
  EXPECT_EQ(narrow, (std::vector<int8_t>{-128, 127}));
  EXPECT_OK(fit(memory(wide, {0}), narrow, {0}, true));
  EXPECT_FAILS(fit(memory(wide, {2}, {16}), narrow, {2}, true), FPT_ERR_DTYPE, "too large for integer(int8)");
  EXPECT_EQ(narrow, (std::vector<int8_t>{-128, 127})) << "a failure leaves the variable alone";
  std::vector<float> reals(2);
  EXPECT_OK(fit(memory(wide, {2}), reals, {2}, true));
}

/// Copies within one array, made together.
struct CopiesTest : testing::Test {
  Doubles values = {1, 2, 3, 4, 5};
  std::vector<CheckedCopy> copies;

  void add(std::size_t from, std::size_t to, int64_t count) {
    const fpt_arg target = test::array_arg(&values[to], {count}, FPT_OUT);
    copies.push_back(fit_array(memory(values, {count}, {}, from), "Tensor", target, true, false, "the value"));
  }
};

TEST_F(CopiesTest, ASourceThatItsOwnTargetOverlapsIsReadFirst) {
  add(0, 1, 4);
  EXPECT_TRUE(copies[0].spoils(copies[0]));
  run_all(copies);
  EXPECT_EQ(values, (Doubles{1, 1, 2, 3, 4}));
}

TEST_F(CopiesTest, ASourceThatAnEarlierCopyOverwritesIsReadFirst) {
  add(0, 4, 1);
  add(4, 0, 1);
  EXPECT_TRUE(copies[0].spoils(copies[1]));
  run_all(copies);
  EXPECT_EQ(values, (Doubles{5, 2, 3, 4, 1})) << "swapped";
}

TEST_F(CopiesTest, WhatIsInPlaceIsNotCopied) {
  add(0, 0, 5);
  EXPECT_TRUE(copies[0].is_in_place());
  EXPECT_FALSE(copies[0].spoils(copies[0]));
  run_all(copies);
  EXPECT_FALSE(copies[0].aside);
  EXPECT_EQ(values, (Doubles{1, 2, 3, 4, 5}));
}

TEST_F(CopiesTest, ATransposedViewIsNotInPlace) {
  values = {1, 2, 3, 4};
  copies.push_back(fit_array(memory(values, {2, 2}, {16, 8}), "Tensor", out(values, {2, 2}), true, false, "the value"));
  EXPECT_FALSE(copies[0].is_in_place());
  run_all(copies);
  EXPECT_EQ(values, (Doubles{1, 3, 2, 4}));
}

TEST_F(CopiesTest, SeparateMemoryIsNotSetAside) {
  add(0, 2, 1);
  add(1, 3, 1);
  run_all(copies);
  EXPECT_FALSE(copies[0].aside || copies[1].aside);
  EXPECT_EQ(values, (Doubles{1, 2, 1, 2, 5}));
}

TEST(CopyPlainly, TakesTheVeryTypeAndShapeElsewhereInMemory) {
  Doubles source = {1, 2}, target(2);
  EXPECT_TRUE(copy_plainly(memory(source, {2}), out(target)));
  EXPECT_EQ(target, source);
}

TEST(CopyPlainly, LeavesEverythingElseToOthers) {
  Doubles source = {1, 2}, target = {-1, -1};
  std::vector<float> single = {-1, -1};
  EXPECT_FALSE(copy_plainly(memory(source, {2}), out(single))) << "type";
  EXPECT_FALSE(copy_plainly(memory(source, {1}), out(target))) << "shape";
  EXPECT_FALSE(copy_plainly(memory(source, {2}), in(target))) << "access";
  EXPECT_FALSE(copy_plainly(memory(source, {2}), out(source))) << "overlap";
  EXPECT_FALSE(copy_plainly(memory(source, {2}), test::array_arg<double>(nullptr, {2}, FPT_OUT)))
      << "failed description";
  fpt_arg tensor = out(target);
  tensor.handle = 1;
  EXPECT_FALSE(copy_plainly(memory(source, {2}), tensor)) << "a tensor";
  EXPECT_EQ(target, (Doubles{-1, -1}));
  EXPECT_EQ(single[0], -1);
}

}  // namespace
}  // namespace fpt
