// SPDX-License-Identifier: MIT
/// The results object: looked into by index or name, without copies.
#include <numeric>

#include "calls/results.hpp"
#include "script.hpp"

namespace fpt {
namespace {

using test::in;
using test::option;
using test::out;
using test::outcome;
using test::Script;

using Doubles = std::vector<double>;

const char* const results_script = R"(
import torch
class Final:
    died = 0
    def __del__(self): Final.died += 1
def many(x):
    return {"flux": x + 1, "count": 3, "name": "west\0east", "half": torch.tensor([0.5], dtype=torch.float16),
            "matrix": torch.arange(6.0).reshape(2, 3), "flag": True}
def pair(x): return x + 1, x + 2
def same(x): return x
def turned(x): return x.t()
def nothing(): pass
def mortal(): t = torch.ones(1); t.owner = Final(); return t
def died(): return Final.died
)";

struct ResultsTest : testing::Test {
  Script script{results_script};
  test::Results results;
  Doubles x = {1, 2};
  void* data = nullptr;
  int64_t extents[FPT_MAX_RANK] = {}, strides[FPT_MAX_RANK] = {};

  void call(const std::string& function) { ASSERT_OK(script.call(function, {in(x)}, {}, &results.handle)); }
  int32_t find(const std::string& name) {
    int32_t index = -1;
    EXPECT_OK(outcome(fpt_results_find(results.handle, name.data(), static_cast<int64_t>(name.size()), &index)));
    return index;
  }
  test::Outcome not_found(const std::string& name) {
    int32_t index = -1;
    const test::Outcome found =
        outcome(fpt_results_find(results.handle, name.data(), static_cast<int64_t>(name.size()), &index));
    EXPECT_EQ(index, -1);
    return found;
  }
  test::Outcome memory(int32_t index, int32_t dtype, int32_t rank) {
    return outcome(fpt_results_data(results.handle, index, dtype, rank, &data, extents, strides));
  }
  template <class T>
  test::Outcome copy(int32_t index, T& target, int32_t cast = 0) {
    fpt_arg arg = out(target);
    return outcome(fpt_results_copy(results.handle, index, &arg, cast));
  }
};

TEST_F(ResultsTest, AreCountedAndNamed) {
  call("many");
  EXPECT_EQ(results.count(), 6);
  EXPECT_EQ(find("flux"), 1);
  EXPECT_EQ(find("matrix  "), 5);
  const char* name = nullptr;
  int64_t length = 0;
  ASSERT_EQ(fpt_results_name(results.handle, 2, &name, &length), FPT_OK);
  EXPECT_EQ(std::string(name, static_cast<std::size_t>(length)), "count");
}

TEST_F(ResultsTest, WithoutNamesAreFoundByIndexOnly) {
  call("pair");
  EXPECT_FAILS(not_found("flux"), FPT_ERR_RESULT_NAME, "its 2 results have no names: use their index");
  EXPECT_FAILS(not_found(""), FPT_ERR_RESULT_NAME, "use their index");
}

TEST_F(ResultsTest, ThatAreNotThereAreTold) {
  call("many");
  EXPECT_FAILS(not_found("fog"), FPT_ERR_RESULT_NAME, "\"flux\", \"count\"");
  for (const int32_t index : {0, 7, -1, INT32_MAX, INT32_MIN})
    EXPECT_FAILS(memory(index, FPT_FLOAT64, 1), FPT_ERR_RESULT_NAME, "there is no result " + std::to_string(index));
}

TEST_F(ResultsTest, OfAFunctionThatReturnedNothingAreNone) {
  ASSERT_OK(script.call("nothing", {}, {}, &results.handle));
  EXPECT_EQ(results.count(), 0);
}

TEST_F(ResultsTest, MemoryIsThatOfTheTensor) {
  call("same");
  ASSERT_OK(memory(1, FPT_FLOAT64, 1));
  EXPECT_EQ(data, x.data());
  call("many");
  ASSERT_OK(memory(5, FPT_FLOAT32, 2));
  EXPECT_EQ(extents[0], 3) << "(2, 3) in Python";
  EXPECT_EQ(strides[1], 12);
}

TEST_F(ResultsTest, AResultMayBeAnotherViewOfTheVariableItIsCopiedTo) {
  Doubles square(64 * 64);
  std::iota(square.begin(), square.end(), 0.0);
  const Doubles before = square;
  ASSERT_OK(script.call("turned", {out(square, {64, 64})}, {}, &results.handle));
  fpt_arg arg = out(square, {64, 64});
  ASSERT_OK(outcome(fpt_results_copy(results.handle, 1, &arg, 0)));
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < 64; ++i)
    for (std::size_t j = 0; j < 64; ++j) wrong += square[64 * i + j] != before[64 * j + i];
  EXPECT_EQ(wrong, 0u);
}

TEST_F(ResultsTest, MemoryHasOneTypeAndRank) {
  call("many");
  EXPECT_FAILS(memory(5, FPT_FLOAT64, 2), FPT_ERR_DTYPE, "result \"matrix\" of many");
  EXPECT_FAILS(memory(5, FPT_FLOAT32, 1), FPT_ERR_RANK, "shape (3, 2) in Fortran order");
  EXPECT_FAILS(memory(2, FPT_INT64, 0), FPT_ERR_RESULT_TYPE, "is of type int and no array: use scalar");
  EXPECT_FAILS(memory(4, FPT_FLOAT32, 1), FPT_ERR_DTYPE, "float16");
}

TEST_F(ResultsTest, AreCopiedWithConversion) {
  call("many");
  Doubles flux(2);
  float half = 0;
  int32_t count = 0;
  bool flag = false;
  ASSERT_OK(copy(1, flux));
  EXPECT_EQ(flux, (Doubles{2, 3}));
  ASSERT_OK(copy(2, count));
  EXPECT_EQ(count, 3);
  ASSERT_OK(copy(6, flag));
  EXPECT_TRUE(flag);
  std::vector<float> one(1), narrow(2);
  ASSERT_OK(copy(4, one));
  EXPECT_EQ(one[0], 0.5f);
  EXPECT_FAILS(copy(1, narrow), FPT_ERR_DTYPE, "cast=.true.");
  ASSERT_OK(copy(1, narrow, 1));
  EXPECT_EQ(narrow, (std::vector<float>{2, 3}));
  EXPECT_FAILS(copy(4, half), FPT_ERR_SHAPE, "(1,)");
}

TEST_F(ResultsTest, TextIsWhole) {
  call("many");
  const char* text = nullptr;
  int64_t length = 0;
  ASSERT_EQ(fpt_results_text(results.handle, 3, &text, &length), FPT_OK);
  EXPECT_EQ(std::string(text, static_cast<std::size_t>(length)), std::string("west\0east", 9));
  EXPECT_FAILS(outcome(fpt_results_text(results.handle, 2, &text, &length)), FPT_ERR_DTYPE,
               "is of type int and no string");
}

TEST_F(ResultsTest, AreReplacedUnderTheSameHandle) {
  call("many");
  const fpt_results before = results.handle;
  call("pair");
  EXPECT_EQ(results.handle, before);
  EXPECT_EQ(results.count(), 2);
}

TEST_F(ResultsTest, StayWhenACallFails) {
  call("pair");
  EXPECT_NE(script.call("many", {}, {}, &results.handle).status, FPT_OK);
  EXPECT_EQ(results.count(), 2);
}

TEST_F(ResultsTest, LetGoOfPythonObjectsWhenTheyAreFreedOrReplaced) {
  ASSERT_OK(script.call("mortal", {}, {}, &results.handle));
  EXPECT_EQ(script.number("died()"), 0);
  ASSERT_OK(script.call("mortal", {}, {}, &results.handle));
  EXPECT_EQ(script.number("died()"), 1);
  fpt_results_free(results.handle);
  EXPECT_EQ(script.number("died()"), 2);
  int32_t count = -1;
  EXPECT_FAILS(outcome(fpt_results_count(results.handle, &count)), FPT_ERR_FREED, "has been freed");
  EXPECT_EQ(count, -1);
}

TEST_F(ResultsTest, OutliveTheirModule) {
  test::Results kept;
  {
    const Script short_lived(results_script);
    ASSERT_OK(short_lived.call("pair", {in(x)}, {}, &kept.handle));
  }
  fpt_arg arg = out(x);
  ASSERT_EQ(fpt_results_copy(kept.handle, 2, &arg, 0), FPT_OK);
  EXPECT_EQ(x, (Doubles{3, 4}));
}

TEST_F(ResultsTest, FollowTheLayoutOfTheModule) {
  const Script same(results_script, {option("layout", "same")});
  ASSERT_OK(same.call("many", {in(x)}, {}, &results.handle));
  ASSERT_OK(memory(5, FPT_FLOAT32, 2));
  EXPECT_EQ(extents[0], 2);
  EXPECT_EQ(strides[0], 12);
}

TEST_F(ResultsTest, AndOutputsMayComeFromOneCall) {
  Doubles y(2);
  ASSERT_OK(script.call("same", {in(x)}, {out(y)}, &results.handle));
  EXPECT_EQ(y, x);
  EXPECT_EQ(results.count(), 1);
}

TEST_F(ResultsTest, BeforeAnyCallAreNone) {
  int32_t count = -1;
  EXPECT_FAILS(outcome(fpt_results_count(0, &count)), FPT_ERR_NOT_LOADED, "not an object with results yet");
}

}  // namespace
}  // namespace fpt
