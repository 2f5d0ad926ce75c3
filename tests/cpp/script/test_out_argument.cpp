// SPDX-License-Identifier: MIT
/// Functions with a parameter `out`: they write into the outputs, and it is told where they do not.
#include "script.hpp"

namespace fpt {
namespace {

using test::in;
using test::named;
using test::option;
using test::out;
using test::Script;

using Doubles = std::vector<double>;

const char* const with_out = R"(
import torch
def returns_none(x, *, out): torch.add(x, 1, out=out)
def returns_out(x, *, out): return torch.add(x, 1, out=out)
def ignores(x, out=None): return x + 2
def several(x, *, out):
    torch.add(x, 1, out=out[0])
    torch.add(x, 2, out=out[1])
def named(x, *, out):
    torch.add(x, 1, out=out["low"])
    torch.add(x, 2, out=out["high"])
def writes_and_fails(x, *, out):
    out[0] = 99
    raise ValueError("too late")
def kind(x, *, out): out.fill_(float(out.dim())); return None
)";

struct OutTest : testing::Test {
  Script script{with_out};
  Doubles x = {1, 2}, a = {-1, -1}, b = {-1, -1};
};

TEST_F(OutTest, TheFunctionMayWriteInPlaceAndReturnNothing) {
  for (int i = 0; i < 4; ++i) {
    a = {-1, -1};
    ASSERT_OK(script.call("returns_none", {in(x)}, {out(a)}));
    EXPECT_EQ(a, (Doubles{2, 3}));
  }
}

TEST_F(OutTest, TheFunctionMayReturnWhatItWasGiven) {
  for (int i = 0; i < 4; ++i) ASSERT_OK(script.call("returns_out", {in(x)}, {out(a)}));
  EXPECT_EQ(a, (Doubles{2, 3}));
}

TEST_F(OutTest, TheFunctionMayIgnoreItAndReturnAResult) {
  for (int i = 0; i < 4; ++i) ASSERT_OK(script.call("ignores", {in(x)}, {out(a)}));
  EXPECT_EQ(a, (Doubles{3, 4}));
}

TEST_F(OutTest, SeveralOutputsAreAList) {
  for (int i = 0; i < 4; ++i) ASSERT_OK(script.call("several", {in(x)}, {out(a), out(b)}));
  EXPECT_EQ(a, (Doubles{2, 3}));
  EXPECT_EQ(b, (Doubles{3, 4}));
}

TEST_F(OutTest, SeveralOutputsWithNamesAreADict) {
  for (int i = 0; i < 4; ++i) ASSERT_OK(script.call("named", {in(x)}, {named("high", out(a)), named("low", out(b))}));
  EXPECT_EQ(a, (Doubles{3, 4}));
  EXPECT_EQ(b, (Doubles{2, 3}));
  EXPECT_FAILS(script.call("named", {in(x)}, {out(a), named("low", out(b))}), FPT_ERR_RESULT_NAME,
               "all outputs have names");
  EXPECT_FAILS(script.call("named", {in(x)}, {named("low", out(b)), out(a)}), FPT_ERR_RESULT_NAME,
               "all outputs have names");
}

TEST_F(OutTest, WithoutOutputsThereIsNoSuchArgument) {
  EXPECT_OK(script.call("ignores", {in(x)}));
  EXPECT_FAILS(script.call("returns_none", {in(x)}), FPT_ERR_SIGNATURE, "out");
}

TEST_F(OutTest, AScalarVariableIsAnArrayWithoutAxes) {
  double value = -1;
  for (int i = 0; i < 4; ++i) ASSERT_OK(script.call("kind", {in(x)}, {out(value)}));
  EXPECT_EQ(value, 0);
}

TEST_F(OutTest, WhatWasWrittenBeforeAFailureStays) {
  EXPECT_EQ(script.call("writes_and_fails", {in(x)}, {out(a)}).status, FPT_ERR_PYTHON);
  EXPECT_EQ(a, (Doubles{99, -1})) << "the documented exception from the rule";
}

TEST_F(OutTest, TextAndValuesCannotBeWrittenInPlace) {
  std::string text(10, ' ');
  EXPECT_FAILS(script.call("returns_none", {in(x)}, {out(text)}), FPT_ERR_KIND, "output 1 cannot be written in place");
  EXPECT_FAILS(script.call("returns_none", {in(x)}, {in(1.0)}), FPT_ERR_KIND, "torch_out of a number");
}

TEST_F(OutTest, ABackwardOutputCannotBeWrittenInPlaceByTorch) {
  EXPECT_FAILS(script.call("returns_none", {in(x)}, {test::array_arg(&a[1], {2}, FPT_OUT, {-8})}), FPT_ERR_STRIDE,
               "output 1");
}

TEST_F(OutTest, AnInputArrayIsNoOutput) {
  EXPECT_FAILS(script.call("returns_none", {in(x)}, {in(a)}), FPT_ERR_ARGUMENT, "use torch_out");
  EXPECT_EQ(a, (Doubles{-1, -1}));
}

TEST_F(OutTest, TwoOutputsOfOneNameAreRefused) {
  EXPECT_FAILS(script.call("named", {in(x)}, {named("low", out(a)), named("low", out(b))}), FPT_ERR_ARGUMENT,
               "two outputs of named are called \"low\"");
  EXPECT_FAILS(script.call("ignores", {in(x), named("out", in(x))}, {out(a)}), FPT_ERR_ARGUMENT,
               "two arguments of ignores are called \"out\"");
}

const char* const neglecting = R"(
import functools, FRAMEWORK
def kept(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs): return function(*args, **kwargs)
    return wrapper
def assigns(x, out): out = 2 * x
@kept
def decorated(x, out):
    y = 2 * x
    out = y
def forgets(x, out): y = 2 * x
def replaces(x, out): out[0] = 2 * x; out[1] = x
def assigns_part(x, out): out = out[:1]; out[0] = 7
def adds(x, out): out += x
def returns_it(x, out): return out
)";

/// Functions that leave their outputs alone, for both frameworks.
class Neglected : public testing::TestWithParam<const char*> {
 protected:
  static std::string source(std::string framework) {
    std::string text = neglecting;
    return text.replace(text.find("FRAMEWORK"), 9, framework);
  }
  Doubles x = {1, 2}, a = {0, 0}, b = {0, 0};
};

INSTANTIATE_TEST_SUITE_P(With, Neglected, testing::Values("torch", "numpy"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(Neglected, IsAnErrorInTheFirstTwoCalls) {
  const Script script(source(GetParam()));
  for (const char* function : {"assigns", "decorated", "forgets"})
    for (int i = 0; i < 2; ++i)
      EXPECT_FAILS(script.call(function, {in(x)}, {out(a)}), FPT_ERR_RESULT_COUNT, "wrote nothing into output 1")
          << function;
  EXPECT_FAILS(script.call("replaces", {in(x)}, {out(a), out(b)}), FPT_ERR_RESULT_COUNT, "write out[...] = y");
  EXPECT_OK(script.call("assigns", {in(x)}, {out(a)})) << "later calls are not checked";
}

TEST_P(Neglected, IsAnErrorInEveryCallInModeSafe) {
  const Script script(source(GetParam()), {option("mode", "safe")});
  for (int i = 0; i < 4; ++i)
    EXPECT_FAILS(script.call("assigns", {in(x)}, {named("y", out(a))}), FPT_ERR_RESULT_COUNT, "output 1 (\"y\")");
}

TEST_P(Neglected, IsNotSaidOfWhatIsMeant) {
  test::CollectedWarnings warnings;
  const Script script(source(GetParam()), {option("mode", "safe")});
  Doubles nothing, zero = {0, 0};
  for (int i = 0; i < 3; ++i) {
    ASSERT_OK(script.call("assigns_part", {in(x)}, {out(a)})) << "through a view, which has another name";
    a = {0, 0};
    ASSERT_OK(script.call("adds", {in(zero)}, {out(a)})) << "nothing, but in place";
    ASSERT_OK(script.call("returns_it", {in(x)}, {out(a)}));
    double value = 0;
    ASSERT_OK(script.call("assigns", {in(x)}, {test::array_arg(&value, {0}, FPT_OUT)})) << "there is nothing to write";
  }
  EXPECT_EQ(warnings.all(), "");
}

const char* const past_torch = R"(
import torch
def elsewhere(x, out): out.set_(2 * x)
def other_data(x, out): out.data = 2 * x
def by_numpy(x, out): out.numpy()[...] = 2 * x.numpy()
def by_data(x, out): out.data.copy_(2 * x)
def by_memory(x, out): memoryview(out.numpy())[:] = memoryview(x.numpy())
def section(x, out): out[::2] = x
def sometimes(x, out):
    if x[0] > 5: out.copy_(x)
def not_in_place(x, out): out.add(x)
)";

TEST(NeglectedByTorch, ATensorThatIsPointedElsewhereIsAnError) {
  const Script script(past_torch);
  Doubles x = {1, 2}, a = {0, 0};
  for (const char* function : {"elsewhere", "other_data"})
    for (int i = 0; i < 2; ++i)
      EXPECT_FAILS(script.call(function, {in(x)}, {out(a)}), FPT_ERR_RESULT_COUNT, "wrote nothing into output 1");
}

TEST(NeglectedByTorch, WritingPastTorchIsSeen) {
  test::CollectedWarnings warnings;
  const Script script(past_torch, {option("mode", "safe")});
  Doubles x = {1, 2};
  for (const char* function : {"by_numpy", "by_data", "by_memory"}) {
    Doubles a = {0, 0};
    for (int i = 0; i < 3; ++i) ASSERT_OK(script.call(function, {in(x)}, {out(a)})) << "the same once more";
    EXPECT_NE(a, (Doubles{0, 0}));
  }
  Doubles strided = {0, 0, 0, 0, 0, 0, 0, 0};
  for (int i = 0; i < 3; ++i)
    ASSERT_OK(script.call("section", {in(x)}, {test::array_arg(strided.data(), {4}, FPT_OUT, {16})}));
  EXPECT_EQ(strided, (Doubles{1, 0, 0, 0, 2, 0, 0, 0}));
  EXPECT_EQ(warnings.all(), "");
}

TEST(NeglectedByTorch, WhatMayBeMeantIsAWarningOnce) {
  test::CollectedWarnings warnings;
  const Script script(past_torch, {option("mode", "safe")});
  Doubles x = {1, 2}, a = {0, 0};
  for (const char* function : {"sometimes", "not_in_place"})
    for (int i = 0; i < 3; ++i) ASSERT_OK(script.call(function, {in(x)}, {out(a)}));
  EXPECT_EQ(warnings.count(), 2u);
  EXPECT_TRUE(test::contains(warnings.all(), "sometimes of " + script.name())) << warnings.all();
}

}  // namespace
}  // namespace fpt
