// SPDX-License-Identifier: MIT
/// What is looked at after a call: inputs that were changed, memory that was kept, conversions that go back.
#include "script.hpp"
#include "script/call.hpp"
#include "torch/torch_access.hpp"

namespace fpt {
namespace {

using test::contains;
using test::in;
using test::option;
using test::out;
using test::Script;

const char* const changes = R"(
import torch
def change(x): x += 1
def change_part(x): x[0].mul_(3)
def change_second(x, y): y += 1
def change_if(x, wanted):
    with torch.inference_mode():
        if wanted: x += 1
def ftn_pytorch_train(x, target):
    if target[0] > 0: target -= 1
    return False, 0.0
def ftn_pytorch_forward(x):
    x += 1
    return x.clone()
)";

/// Whether every call looks: without the extension it would take too long.
bool all_calls_look() { return torch_access::tells_version_at_once(); }

TEST(InputModified, IsAnErrorInEveryCall) {
  for (const char* mode : {"checked", "safe"}) {
    if (mode == std::string("checked") && !all_calls_look()) continue;
    const Script script(changes, {option("mode", mode)});
    std::vector<double> x = {1, 2}, y = {1, 2};
    for (int i = 0; i < 5; ++i) {
      EXPECT_FAILS(script.call("change", {in(x)}), FPT_ERR_INPUT_MODIFIED, "input 1 was changed in place by change");
      EXPECT_FAILS(script.call("change_part", {in(x)}), FPT_ERR_INPUT_MODIFIED, "(x = x.clone())");
      EXPECT_FAILS(script.call("change_second", {in(x), test::named("y", in(y))}), FPT_ERR_INPUT_MODIFIED,
                   "input 2 (\"y\") was changed");
    }
  }
}

TEST(InputModified, IsLookedForInTheFirstTwoCallsInAnyCase) {
  const Script script(changes);
  std::vector<double> x = {1, 2};
  EXPECT_FAILS(script.call("change", {in(x)}), FPT_ERR_INPUT_MODIFIED, "input 1 was changed in place by change");
  EXPECT_FAILS(script.call("change", {in(x)}), FPT_ERR_INPUT_MODIFIED, "not passed with torch_out");
}

TEST(InputModified, IsToldOfTheCallThatDidIt) {
  if (!all_calls_look()) GTEST_SKIP() << "there is no extension";
  Script script(changes);
  std::vector<double> x = {1, 2}, target = {0, 0};
  for (int i = 0; i < 6; ++i) {
    ASSERT_OK(script.call("change_if", {in(x), in(0)}));
    ASSERT_OK(script.train({in(x)}, {in(target)}));
  }
  for (int i = 0; i < 3; ++i) {
    EXPECT_FAILS(script.call("change_if", {in(x), in(1)}), FPT_ERR_INPUT_MODIFIED, "input 1");
    ASSERT_OK(script.call("change_if", {in(x), in(0)}));
    ASSERT_OK(script.call("change_if", {out(x), in(1)}));
    target[0] = 1;
    EXPECT_FAILS(script.train({in(x)}, {in(target)}), FPT_ERR_INPUT_MODIFIED, "target 1");
    target = {0, 0};
    ASSERT_OK(script.train({in(x)}, {in(target)}));
  }
}

TEST(InputModified, IsSeenInAListToo) {
  const Script script("import torch\ndef ftn_pytorch_forward(x): first = x.pop(0); first += 1; return first.clone()");
  std::vector<double> x = {1, 2}, y = {3, 4};
  fpt_wrap wrap = 0;
  fpt_arg args[] = {in(x), in(y)};
  test::Tensor output;
  ASSERT_EQ(fpt_wrap_create(&wrap), FPT_OK);
  for (fpt_arg& arg : args) ASSERT_EQ(fpt_wrap_add(wrap, &arg), FPT_OK);
  for (int i = 0; i < (all_calls_look() ? 4 : 2); ++i)
    EXPECT_FAILS(test::outcome(fpt_module_forward_wrap(script.handle(), wrap, &output.handle, 0)),
                 FPT_ERR_INPUT_MODIFIED, "input 1");
  fpt_wrap_free(wrap);
}

TEST(InputModified, LeavesOutputsUntouched) {
  const Script script(changes);
  std::vector<double> x = {1, 2}, y = {-1, -1};
  EXPECT_EQ(script.forward({in(x)}, {out(y)}).status, FPT_ERR_INPUT_MODIFIED);
  EXPECT_EQ(y, (std::vector<double>{-1, -1}));
}

TEST(InputModified, IsNoErrorForWhatWasPassedAsOutput) {
  const Script script(changes, {option("mode", "safe")});
  std::vector<double> x = {1, 2};
  for (int i = 0; i < 3; ++i) EXPECT_OK(script.call("change", {out(x)}));
  EXPECT_EQ(x, (std::vector<double>{4, 5}));
}

TEST(InputModified, IsNoErrorForACopyOfTheLibrary) {
  std::vector<double> x = {1, 2};
  const Script copies(changes, {option("inputs", "copy"), option("mode", "safe")});
  EXPECT_OK(copies.call("change", {in(x)}));
  const Script casts(changes, {option("dtype", "float32"), option("mode", "safe")});
  EXPECT_OK(casts.call("change", {in(x)}));
  const Script shares(changes, {option("mode", "safe")});
  EXPECT_OK(shares.call("change", {test::array_arg(x.data(), {2}, FPT_COPY)}));
  EXPECT_EQ(x, (std::vector<double>{1, 2}));
}

const char* const keeps = R"(
import torch
kept = []
weight = torch.ones(2, dtype=torch.float64, requires_grad=True)
def nothing(x, y=None): pass
def object(x): kept.append(x)
def second(x, y): kept.append(y)
def view(x): kept.append(x[1:])
def graph(x): kept.append((weight * x).sum())
def numpy(x): kept.append(x.numpy())
def data(x): kept.append(x.data)
def parameter(x): kept.append(torch.nn.Parameter(x))
def clone(x): kept.append(x.clone())
def cycle(x):
    loop = [x]
    loop.append(loop)
def both(x): kept.append(x)
)";

struct RetainedTest : testing::Test {
  test::CollectedWarnings warnings;
  Script script{keeps};
  std::vector<double> x = {1, 2}, y = {3, 4};
};

TEST_F(RetainedTest, IsReportedWithFunctionAndArgument) {
  ASSERT_OK(script.call("second", {in(x), test::named("y", in(y))}));
  EXPECT_EQ(warnings.count(), 1u);
  EXPECT_TRUE(contains(warnings.all(), "second of " + script.name() + " kept input 2 (\"y\")")) << warnings.all();
  EXPECT_TRUE(contains(warnings.all(), "inputs=\"copy\""));
}

TEST_F(RetainedTest, IsReportedWithWhatToKeepInstead) {
  ASSERT_OK(script.call("object", {in(x)}));
  EXPECT_TRUE(contains(warnings.all(), "keep x.clone()")) << warnings.all();
  const Script with_numpy("import numpy\nkept = []\ndef keep(x): kept.append(x)\ndef change(x): x += 1\n");
  ASSERT_OK(with_numpy.call("keep", {in(x)}));
  EXPECT_TRUE(contains(warnings.all(), "keep x.copy()")) << warnings.all();
  EXPECT_FAILS(with_numpy.call("change", {in(x)}), FPT_ERR_INPUT_MODIFIED, "x = x.copy()");
}

TEST_F(RetainedTest, IsReportedOncePerFunctionAndArgument) {
  for (int i = 0; i < 2; ++i) ASSERT_OK(script.call("object", {in(x)}));
  EXPECT_EQ(warnings.count(), 1u);
  ASSERT_OK(script.call("both", {in(x)}));
  EXPECT_EQ(warnings.count(), 2u) << "another function";
}

TEST_F(RetainedTest, IsReportedOnceInModeSafeToo) {
  const Script safe(keeps, {option("mode", "safe")});
  for (int i = 0; i < 5; ++i) ASSERT_OK(safe.call("object", {in(x)}));
  EXPECT_EQ(warnings.count(), 1u);
}

TEST_F(RetainedTest, IsSeenThroughWhateverKeepsTheMemory) {
  for (const char* function : {"object", "view", "graph", "numpy", "data", "parameter"}) {
    const std::size_t before = warnings.count();
    ASSERT_OK(script.call(function, {in(x)}));
    EXPECT_EQ(warnings.count(), before + 1) << function;
  }
}

TEST_F(RetainedTest, IsNotSaidOfClonesAndOfNothing) {
  ASSERT_OK(script.call("clone", {in(x)}));
  ASSERT_OK(script.call("nothing", {in(x), in(y)}));
  EXPECT_EQ(warnings.all(), "");
}

TEST_F(RetainedTest, IsNotSaidOfReferenceCyclesThatCanBeCollected) {
  ASSERT_OK(script.call("cycle", {in(x)}));
  EXPECT_EQ(warnings.all(), "");
}

TEST_F(RetainedTest, IsNotSaidOfCopiesThatTheScriptMayKeep) {
  const Script copies(keeps, {option("inputs", "copy")});
  ASSERT_OK(copies.call("object", {in(x)}));
  EXPECT_EQ(warnings.all(), "");
}

TEST_F(RetainedTest, IsNotSaidOfAResultThatWasHandedOut) {
  const Script passes("import torch\ndef same(x): return x");
  test::Results results;
  ASSERT_OK(passes.call("same", {in(x)}, {}, &results.handle));
  EXPECT_EQ(warnings.all(), "");
}

TEST_F(RetainedTest, WhatWasKeptSeesTheMemoryOfTheCaller) {
  for (int i = 0; i < 6; ++i) {
    x[0] = i;
    ASSERT_OK(script.call("object", {in(x)}));
  }
  EXPECT_EQ(script.number("kept[0][0].item()"), 5) << "as the warning says";
}

TEST(InputsCopy, WhatTheScriptKeepsStaysAsItWas) {
  const Script script(keeps, {option("inputs", "copy")});
  std::vector<double> x(2);
  for (const char* function : {"object", "view", "graph", "numpy", "data", "parameter"}) {
    script.truth("kept.clear() is None");
    for (int i = 1; i <= 6; ++i) {
      x = {1.0 * i, 10.0 * i};
      ASSERT_OK(script.call(function, {in(x)}));
    }
    const std::string expected = function == std::string("graph")  ? "[11, 22, 33, 44, 55, 66]"
                                 : function == std::string("view") ? "[10, 20, 30, 40, 50, 60]"
                                                                   : "[1, 2, 3, 4, 5, 6]";
    const std::string first = function == std::string("graph") ? "k" : "k[0]";
    EXPECT_EQ(script.text("[int(" + first + ") for k in kept]"), expected) << function;
  }
}

const char* const casts = R"(
import torch
kept = []
def dtype(x): return str(x.dtype)
def double(x): x *= 2
def total(x): return x.sum().item()
def first(x): x[0] = 7
def keep(x): kept.append(x.numpy())
def replace(x): x.set_(torch.full((2,), 7.0))
def points_elsewhere(x): x.data = torch.full((2,), 7.0)
)";

struct CastTest : testing::Test {
  Script script{casts, {option("dtype", "float32")}};

  std::string seen(fpt_arg arg) {
    std::string text(50, ' ');
    EXPECT_OK(script.call("dtype", {arg}, {out(text)}));
    return trimmed(text.data(), 50);
  }
};

TEST_F(CastTest, RealAndComplexArraysArriveInThatPrecision) {
  std::vector<double> x(2);
  std::vector<float> single(2);
  std::vector<std::complex<double>> z(2);
  std::vector<int64_t> n(2);
  EXPECT_EQ(seen(in(x)), "torch.float32");
  EXPECT_EQ(seen(in(single)), "torch.float32");
  EXPECT_EQ(seen(in(z)), "torch.complex64");
  EXPECT_EQ(seen(in(n)), "torch.int64") << "integers stay";
  EXPECT_EQ(seen(test::array_arg(x.data(), {2}, FPT_COPY)), "torch.float32");
}

TEST_F(CastTest, EveryCallSeesTheValuesOfNow) {
  std::vector<double> x(2);
  double total = 0;
  for (int i = 0; i < 6; ++i) {
    x = {1.0 * i, 2.0 * i};
    ASSERT_OK(script.call("total", {in(x)}, {out(total)}));
    EXPECT_EQ(total, 3.0 * i);
  }
}

TEST_F(CastTest, WhatTheScriptChangesGoesBackIntoAnOutput) {
  std::vector<double> x = {1, 2, 3, 4};
  const fpt_arg section = test::array_arg(x.data(), {2}, FPT_OUT, {16});
  for (int i = 0; i < 4; ++i) ASSERT_OK(script.call("double", {section}));
  EXPECT_EQ(x, (std::vector<double>{16, 2, 48, 4}));
}

TEST_F(CastTest, WhatTheScriptLeavesAloneKeepsItsPrecision) {
  const double third = 1.0 / 3;
  std::vector<double> x = {third, 1e-300, third};
  std::vector<std::complex<double>> z = {{third, 1e300}};
  std::string name(50, ' ');
  for (int i = 0; i < 4; ++i) {
    ASSERT_OK(script.call("total", {out(x)}, {out(x[2])}));
    x[2] = third;
    EXPECT_EQ(x, (std::vector<double>{third, 1e-300, third}));
    ASSERT_OK(script.call("first", {out(x)}));
    EXPECT_EQ(x, (std::vector<double>{7, 1e-300, third})) << "only what was changed";
    x[0] = third;
    ASSERT_OK(script.call("dtype", {out(z)}, {out(name)}));
    EXPECT_EQ(z[0], std::complex<double>(third, 1e300));
  }
}

TEST(CastOfAWrap, LeavesArraysAlone) {
  const Script script(
      "import torch\ndef ftn_pytorch_forward(x): return 2 * x[0]\n"
      "def ftn_pytorch_train(x, target): return False, (x[0] - target).sum()",
      {option("dtype", "float32")});
  std::vector<double> x = {1.0 / 3}, target = {1.0 / 7};
  fpt_wrap wrap = 0;
  fpt_arg arg = out(x);  // as add_array describes it
  const test::Tensor held(in(target));
  test::Tensor output;
  ASSERT_EQ(fpt_wrap_create(&wrap), FPT_OK);
  ASSERT_EQ(fpt_wrap_add(wrap, &arg), FPT_OK);
  int32_t completed = 0;
  double loss = 0;
  for (int i = 0; i < 4; ++i) {
    ASSERT_OK(test::outcome(fpt_module_forward_wrap(script.handle(), wrap, &output.handle, 0)));
    ASSERT_OK(test::outcome(fpt_module_train_wrap(script.handle(), wrap, held.handle, &completed, &loss)));
    EXPECT_EQ(x[0], 1.0 / 3);
    EXPECT_EQ(target[0], 1.0 / 7);
  }
  fpt_wrap_free(wrap);
}

TEST_F(CastTest, WhatTheScriptChangesInAnInputDoesNotGoBack) {
  std::vector<double> x = {1, 2};
  for (int i = 0; i < 4; ++i) ASSERT_OK(script.call("double", {in(x)}));
  EXPECT_EQ(x, (std::vector<double>{1, 2}));
}

TEST_F(CastTest, WhatTheScriptKeepsIsNotOverwrittenByLaterCalls) {
  std::vector<double> x(2);
  for (int i = 1; i <= 6; ++i) {
    x = {1.0 * i, 0};
    ASSERT_OK(script.call("keep", {in(x)}));
  }
  EXPECT_EQ(script.text("[int(k[0]) for k in kept]"), "[1, 2, 3, 4, 5, 6]");
}

TEST_F(CastTest, ATensorThatWasPointedElsewhereDoesNotGoBack) {
  // the memory of the conversion is gone by then
  std::vector<double> x = {1, 2};
  for (int i = 0; i < 4; ++i) {
    EXPECT_OK(script.call("replace", {out(x)}));
    EXPECT_OK(script.call("points_elsewhere", {out(x)}));
  }
  EXPECT_EQ(x, (std::vector<double>{1, 2}));
}

TEST(CastTo64, WidensAndNarrowsBack) {
  const Script script(casts, {option("dtype", "float64")});
  std::vector<float> x = {1.5f, 2};
  for (int i = 0; i < 4; ++i) ASSERT_OK(script.call("double", {out(x)}));
  EXPECT_EQ(x, (std::vector<float>{24, 32}));
}

}  // namespace
}  // namespace fpt
