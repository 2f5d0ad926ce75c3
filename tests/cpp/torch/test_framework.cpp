// SPDX-License-Identifier: MIT
/// NumPy scripts: the same arrays in the other framework, and torch stays out of the process's way.
#include "script.hpp"
#include "torch/framework.hpp"

namespace fpt {
namespace {

using test::in;
using test::option;
using test::out;
using test::Script;

const char* const source = R"(
import numpy as np
kept = []
def kind(x): return f"{type(x).__name__} {x.dtype} {x.shape} {tuple(s // x.itemsize for s in x.strides)}"
def address(x): return x.ctypes.data
def total(x): return float(x.sum())
def change(x): x += 1
def keep(x): kept.append(x)
def keep_part(x): kept.append(x[1:])
def keep_memory(x): kept.append(memoryview(x))
def items(x): return str(x.tolist())
def half(x): return x.astype(np.float16)
def single(x): return x.astype(np.float32)
def unsigned(x): return x.astype(np.uint8)
def too_wide(x): return x.astype(np.uint32)
def swapped(x): return x.astype(">f8")
def objects(x): return np.array([None, "a"], dtype=object)
def dates(): return np.array(["2020-01-01"], dtype="datetime64[D]")
def backwards(x): return x[::-1]
def broadcast(x): return np.broadcast_to(x[:1], (3,))
def scalar(x): return x[0]
def truth(x): return x[0] > 0
def eight(x): return x.reshape((1,) * 7 + (3,))
def wide(): return np.zeros(2, dtype=np.longdouble)
def refuses(): raise ValueError("this variable is read-only by law")
def fails(): raise OSError("the disk is read-only")
)";

struct NumPyTest : testing::Test {
  Script script{source};
  std::vector<double> x = {1, 2, 3};

  std::string text_of(const std::string& function, fpt_arg arg) {
    std::string text(200, ' ');
    EXPECT_OK(script.call(function, {arg}, {out(text)}));
    return trimmed(text.data(), 200);
  }
};

TEST_F(NumPyTest, ArraysArriveAsNumPyArraysOfTheSameMemory) {
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(text_of("kind", in(x, {3, 1})), "ndarray float64 (1, 3) (3, 1)");
    int64_t seen = 0;
    ASSERT_OK(script.call("address", {in(x)}, {out(seen)}));
    EXPECT_EQ(seen, test::address(x.data()));
  }
}

TEST_F(NumPyTest, EveryElementTypeArrives) {
  std::vector<char> memory(64);
  for (const int32_t type :
       {FPT_BOOL, FPT_INT8, FPT_INT16, FPT_INT32, FPT_INT64, FPT_FLOAT32, FPT_FLOAT64, FPT_COMPLEX64, FPT_COMPLEX128}) {
    fpt_arg arg;
    const int64_t n = 2;
    fpt_arg_array(&arg, memory.data(), type, 1, &n, nullptr, FPT_IN);
    for (int i = 0; i < 3; ++i)
      EXPECT_EQ(text_of("kind", arg), std::string("ndarray ") + dtype_name(type) + " (2,) (1,)");
  }
}

TEST_F(NumPyTest, NegativeStridesWork) {
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(text_of("items", test::array_arg(&x[2], {3}, FPT_IN, {-8})), "[3.0, 2.0, 1.0]");
    EXPECT_EQ(text_of("items", test::array_arg(&x[1], {2, 2}, FPT_IN, {-8, 8})), "[[2.0, 1.0], [3.0, 2.0]]");
  }
}

TEST_F(NumPyTest, AScalarByReferenceIsAnArrayWithoutAxes) {
  double value = 4;
  for (int i = 0; i < 5; ++i) ASSERT_OK(script.call("change", {out(value)}));
  EXPECT_EQ(value, 9);
}

TEST_F(NumPyTest, ChangingAnInputIsRefusedInEveryCall) {
  for (int i = 0; i < 5; ++i)
    EXPECT_FAILS(script.call("change", {in(x)}), FPT_ERR_INPUT_MODIFIED, "only arrays passed with torch_out");
  EXPECT_EQ(x, (std::vector<double>{1, 2, 3}));
  for (int i = 0; i < 5; ++i) ASSERT_OK(script.call("change", {out(x)}));
  EXPECT_EQ(x, (std::vector<double>{6, 7, 8}));
}

TEST_F(NumPyTest, OtherFailuresThatSpeakOfReadOnlyStayWhatTheyAre) {
  EXPECT_FAILS(script.call("fails"), FPT_ERR_PYTHON, "OSError: the disk is read-only");
}

TEST_F(NumPyTest, KeptArraysAreReportedOnce) {
  for (const char* function : {"keep", "keep_part", "keep_memory"}) {
    test::CollectedWarnings warnings;
    for (int i = 0; i < 5; ++i) ASSERT_OK(script.call(function, {in(x)}));
    EXPECT_EQ(warnings.count(), 1u) << function;
    EXPECT_TRUE(test::contains(warnings.all(), std::string(function) + " of ")) << warnings.all();
  }
}

TEST_F(NumPyTest, CopiesMayBeKept) {
  const Script copies(source, {option("inputs", "copy")});
  test::CollectedWarnings warnings;
  for (const char* function : {"keep", "keep_part", "keep_memory"}) {
    copies.truth("kept.clear() is None");
    for (int i = 0; i < 6; ++i) {
      x = {1.0 * i, 1.0 * i, 0};
      ASSERT_OK(copies.call(function, {in(x)}));
    }
    EXPECT_EQ(copies.text("[int(k[0]) for k in kept]"), "[0, 1, 2, 3, 4, 5]") << function;
  }
  EXPECT_EQ(warnings.all(), "");
}

TEST_F(NumPyTest, ConversionsGoBackIntoOutputs) {
  const Script casts(source, {option("dtype", "float32")});
  std::string text(100, ' ');
  ASSERT_OK(casts.call("kind", {in(x)}, {out(text)}));
  EXPECT_EQ(trimmed(text.data(), 100), "ndarray float32 (3,) (1,)");
  for (int i = 0; i < 5; ++i) ASSERT_OK(casts.call("change", {out(x)}));
  EXPECT_EQ(x, (std::vector<double>{6, 7, 8}));
}

TEST_F(NumPyTest, ACopyOfASectionIsTheScriptsOwn) {
  const fpt_arg copy = test::array_arg(&x[2], {3}, FPT_COPY, {-8});
  EXPECT_EQ(text_of("items", copy), "[3.0, 2.0, 1.0]");
}

struct NumPyResult : NumPyTest {};

TEST_F(NumPyResult, OfAnyStrideIsDelivered) {
  std::vector<double> y(3);
  ASSERT_OK(script.call("backwards", {in(x)}, {out(y)}));
  EXPECT_EQ(y, (std::vector<double>{3, 2, 1}));
  ASSERT_OK(script.call("broadcast", {in(x)}, {out(y)}));
  EXPECT_EQ(y, (std::vector<double>{1, 1, 1}));
}

TEST_F(NumPyResult, OfHalfAndSinglePrecisionWidens) {
  std::vector<double> y(3);
  ASSERT_OK(script.call("half", {in(x)}, {out(y)}));
  EXPECT_EQ(y, x);
  y.assign(3, 0);
  ASSERT_OK(script.call("single", {in(x)}, {out(y)}));
  EXPECT_EQ(y, x);
  std::vector<int16_t> n(3);
  ASSERT_OK(script.call("unsigned", {in(x)}, {out(n)}));
  EXPECT_EQ(n, (std::vector<int16_t>{1, 2, 3}));
}

TEST_F(NumPyResult, ThatIsAScalarOfNumPyKeepsItsType) {
  double value = 0;
  float narrow = 0;
  ASSERT_OK(script.call("scalar", {in(x)}, {out(value)}));
  EXPECT_EQ(value, 1);
  EXPECT_FAILS(script.call("scalar", {in(x)}, {out(narrow)}), FPT_ERR_DTYPE, "float64");
  bool truth = false;
  ASSERT_OK(script.call("truth", {in(x)}, {out(truth)}));
  EXPECT_TRUE(truth);
}

TEST_F(NumPyResult, OfATypeWithoutCounterpartIsRefused) {
  std::vector<double> y(3, -1);
  EXPECT_FAILS(script.call("too_wide", {in(x)}, {out(y)}), FPT_ERR_DTYPE, "convert it in the script");
  EXPECT_FAILS(script.call("swapped", {in(x)}, {out(y)}), FPT_ERR_RESULT_TYPE, "foreign byte order");
  EXPECT_FAILS(script.call("wide", {}, {out(y)}), FPT_ERR_DTYPE, "");
  EXPECT_NE(script.call("objects", {in(x)}, {out(y)}).status, FPT_OK);
  EXPECT_NE(script.call("dates", {}, {out(y)}).status, FPT_OK);
  EXPECT_FAILS(script.call("eight", {in(x)}, {out(y)}), FPT_ERR_RANK, "8 axes");
  EXPECT_EQ(y, (std::vector<double>{-1, -1, -1}));
}

}  // namespace
}  // namespace fpt
