// SPDX-License-Identifier: MIT
/// Operators and assignment by handles: what is refused, and what carries a failure.
#include "script.hpp"
#include "values/operators.hpp"

namespace fpt {
namespace {

using test::in;
using test::out;
using test::outcome;

using Doubles = std::vector<double>;

struct OperatorTest : testing::Test {
  Doubles x = {1, 2}, y = {3, 4, 5};
  test::Tensor two{out(x)}, three{out(y)}, result;

  test::Outcome operate(int32_t operation, fpt_tensor left, fpt_tensor right, fpt_arg* scalar = nullptr) {
    return outcome(fpt_tensor_operate(operation, left, right, scalar, &result.handle));
  }
  static test::Outcome used(fpt_tensor tensor) {
    fpt_arg arg;
    return outcome(fpt_tensor_arg(tensor, &arg));
  }
  static Doubles values(fpt_tensor tensor, std::size_t n) {
    Doubles copied(n);
    fpt_arg arg = out(copied);
    EXPECT_OK(outcome(fpt_tensor_copy(tensor, &arg, 0)));
    return copied;
  }
};

TEST_F(OperatorTest, TakesAScalarOnEitherSide) {
  fpt_arg scalar = in(10.0);
  ASSERT_OK(operate(FPT_SUBTRACT, two.handle, 0, &scalar));
  EXPECT_EQ(values(result.handle, 2), (Doubles{-9, -8}));
  fpt_tensor_free(result.handle);
  ASSERT_OK(operate(FPT_SUBTRACT, 0, two.handle, &scalar));
  EXPECT_EQ(values(result.handle, 2), (Doubles{9, 8}));
}

TEST_F(OperatorTest, RefusesNothingBesideAScalar) {
  fpt_arg scalar = in(10.0);
  EXPECT_FAILS(operate(FPT_ADD, 0, 0, &scalar), FPT_ERR_NOT_LOADED, "not a tensor with contents yet");
  EXPECT_FAILS(used(result.handle), FPT_ERR_NOT_LOADED, "not a tensor with contents yet");
}

TEST_F(OperatorTest, RefusesHandlesThatAreNone) {
  const fpt_tensor freed = two.handle;
  fpt_tensor_free(two.handle);
  EXPECT_FAILS(operate(FPT_ADD, freed, three.handle), FPT_ERR_FREED, "has been freed");
  EXPECT_FAILS(operate(FPT_ADD, three.handle, 0), FPT_ERR_NOT_LOADED, "");
  EXPECT_FAILS(operate(FPT_ADD, three.handle, 12345), FPT_ERR_ARGUMENT, "");
  EXPECT_FAILS(operate(99, three.handle, three.handle), FPT_ERR_ARGUMENT, "there is no operator 99");
  EXPECT_FAILS(operate(-1, three.handle, three.handle), FPT_ERR_ARGUMENT, "there is no operator -1");
}

TEST_F(OperatorTest, AFailureGoesThroughWithItsFirstText) {
  EXPECT_FAILS(operate(FPT_ADD, two.handle, three.handle), FPT_ERR_PYTHON, "must match the size");
  EXPECT_NE(result.handle, 0);
  EXPECT_EQ(fpt_tensor_is_set(result.handle), 0);
  fpt_arg scalar = in(2.0);
  test::Tensor next, last;
  const test::Outcome second = outcome(fpt_tensor_operate(FPT_POWER, result.handle, 0, &scalar, &next.handle));
  EXPECT_FAILS(second, FPT_ERR_PYTHON, "must match the size");
  EXPECT_FAILS(outcome(fpt_tensor_operate(FPT_ADD, three.handle, next.handle, nullptr, &last.handle)), FPT_ERR_PYTHON,
               "must match the size");
  EXPECT_EQ(used(last.handle).text, second.text);
}

TEST_F(OperatorTest, AFailureIsAssignedToANameAndNotIntoAnArray) {
  EXPECT_FAILS(operate(FPT_ADD, two.handle, three.handle), FPT_ERR_PYTHON, "");
  fpt_tensor other = 0;
  EXPECT_OK(outcome(fpt_tensor_assign(&other, result.handle)));
  EXPECT_FAILS(used(other), FPT_ERR_PYTHON, "must match the size");
  EXPECT_FAILS(outcome(fpt_tensor_assign(&two.handle, result.handle)), FPT_ERR_PYTHON, "must match the size");
  EXPECT_EQ(x, (Doubles{1, 2}));
  fpt_tensor_free(other);
}

TEST_F(OperatorTest, AssignmentIntoAnArrayNeedsItsShapeAndType) {
  EXPECT_FAILS(outcome(fpt_tensor_assign(&two.handle, three.handle)), FPT_ERR_SHAPE, "(2,)");
  EXPECT_FAILS(outcome(fpt_tensor_assign(&two.handle, three.handle)), FPT_ERR_SHAPE, "(3,)");
  std::vector<float> single = {1, 2};
  const test::Tensor other(out(single));
  EXPECT_FAILS(outcome(fpt_tensor_assign(&two.handle, other.handle)), FPT_ERR_DTYPE, "float32");
  EXPECT_EQ(x, (Doubles{1, 2}));
}

TEST_F(OperatorTest, AssignmentIntoAnArrayKeepsTheHandle) {
  fpt_arg scalar = in(10.0);
  ASSERT_OK(operate(FPT_MULTIPLY, two.handle, 0, &scalar));
  const fpt_tensor before = two.handle;
  ASSERT_OK(outcome(fpt_tensor_assign(&two.handle, result.handle)));
  EXPECT_EQ(two.handle, before);
  EXPECT_EQ(x, (Doubles{10, 20}));
}

TEST_F(OperatorTest, AssignmentMakesNamesThatAreFreedAlone) {
  ASSERT_OK(operate(FPT_ADD, two.handle, two.handle));
  fpt_tensor other = 0;
  ASSERT_OK(outcome(fpt_tensor_assign(&other, result.handle)));
  EXPECT_NE(other, result.handle);
  EXPECT_NE(fpt_tensor_address(other), fpt_tensor_address(result.handle));
  fpt_tensor_free(result.handle);
  EXPECT_EQ(values(other, 2), (Doubles{2, 4}));
  const fpt_tensor before = other;
  ASSERT_OK(outcome(fpt_tensor_assign(&other, other)));
  EXPECT_EQ(other, before);
  ASSERT_OK(outcome(fpt_tensor_assign(&other, 0)));
  EXPECT_EQ(other, 0);
  fpt_tensor_free(before);
}

}  // namespace
}  // namespace fpt
