// SPDX-License-Identifier: MIT
/// Results into outputs and results objects.
#include "calls/results.hpp"
#include "fake_driver.hpp"
#include "script.hpp"

namespace fpt {
namespace {

using test::in;
using test::named;
using test::option;
using test::out;
using test::Script;

using Doubles = std::vector<double>;

const char* const outputs_script = R"(
import collections, dataclasses
import torch
Pair = collections.namedtuple("Pair", "first second")
@dataclasses.dataclass
class State:
    flux: torch.Tensor
    heat: torch.Tensor
def one(x): return x + 1
def pair(x): return x + 1, x + 2
def as_list(x): return [x + 1, x + 2]
def as_dict(x): return {"flux": x + 1, "heat": x + 2, "steps": 3}
def as_namedtuple(x): return Pair(x + 1, x + 2)
def as_dataclass(x): return State(flux=x + 1, heat=x + 2)
def nothing(x): pass
def wrong(x, kind):
    return eval(kind, globals(), dict(x=x))
def second_is_wrong(x): return x + 1, torch.zeros(7)
def ftn_pytorch_forward(x, scale=2): return scale * x
)";

struct DeliverTest : testing::Test {
  static void SetUpTestSuite() { script_ = new Script(outputs_script); }
  static void TearDownTestSuite() { delete script_; }
  static const Script& script() { return *script_; }
  Doubles x = {1, 2}, a = {-1, -1}, b = {-1, -1};
  const Doubles untouched = {-1, -1};

  test::Outcome wrong(const std::string& expression, std::vector<fpt_arg> outputs) {
    return script().call("wrong", {in(x), in(expression.c_str())}, std::move(outputs));
  }

 private:
  static Script* script_;
};

Script* DeliverTest::script_ = nullptr;

TEST_F(DeliverTest, OneResultGoesIntoOneOutput) {
  for (int i = 0; i < 4; ++i) ASSERT_OK(script().call("one", {in(x)}, {out(a)}));
  EXPECT_EQ(a, (Doubles{2, 3}));
  ASSERT_OK(script().forward({in(x)}, {out(a)}));
  EXPECT_EQ(a, (Doubles{2, 4}));
}

TEST_F(DeliverTest, TheIthResultGoesIntoTheIthOutput) {
  for (const char* function : {"pair", "as_list", "as_namedtuple"}) {
    a = b = untouched;
    ASSERT_OK(script().call(function, {in(x)}, {out(a), out(b)})) << function;
    EXPECT_EQ(a, (Doubles{2, 3})) << function;
    EXPECT_EQ(b, (Doubles{3, 4})) << function;
  }
}

TEST_F(DeliverTest, NamedResultsGoByName) {
  ASSERT_OK(script().call("as_dict", {in(x)}, {named("heat", out(a)), named("flux", out(b))}));
  EXPECT_EQ(a, (Doubles{3, 4}));
  EXPECT_EQ(b, (Doubles{2, 3}));
  ASSERT_OK(script().call("as_dataclass", {in(x)}, {named("heat", out(a))}));
  EXPECT_EQ(a, (Doubles{3, 4}));
  ASSERT_OK(script().call("as_namedtuple", {in(x)}, {named("second", out(b)), named("first", out(a))}));
  EXPECT_EQ(a, (Doubles{2, 3}));
  EXPECT_EQ(b, (Doubles{3, 4}));
}

TEST_F(DeliverTest, AResultWithoutANameDoesNotGoIntoANamedOutput) {
  EXPECT_FAILS(script().call("one", {in(x)}, {named("y", out(a))}), FPT_ERR_RESULT_NAME,
               "returned 1 result without names for named outputs");
  EXPECT_FAILS(wrong("3.5", {named("y", out(a[0]))}), FPT_ERR_RESULT_NAME, "leave out the names");
  EXPECT_EQ(a, untouched);
}

TEST_F(DeliverTest, NamedResultsNeedNamedOutputs) {
  EXPECT_FAILS(script().call("as_dict", {in(x)}, {out(a)}), FPT_ERR_RESULT_NAME, "write torch_out(\"name\", x)");
  EXPECT_FAILS(script().call("as_dataclass", {in(x)}, {out(a), out(b)}), FPT_ERR_RESULT_NAME, "\"flux\", \"heat\"");
  EXPECT_EQ(a, untouched);
}

TEST_F(DeliverTest, NamesThatAreNotThereAreListed) {
  EXPECT_FAILS(script().call("as_dict", {in(x)}, {named("flux", out(a)), named("fog", out(b))}), FPT_ERR_RESULT_NAME,
               "no result called \"fog\"; there are \"flux\", \"heat\", \"steps\"");
  EXPECT_EQ(a, untouched);
}

TEST_F(DeliverTest, AllOutputsAreNamedOrNone) {
  EXPECT_FAILS(script().call("as_dict", {in(x)}, {named("flux", out(a)), out(b)}), FPT_ERR_RESULT_NAME, "or none has");
  EXPECT_FAILS(script().call("pair", {in(x)}, {out(a), named("flux", out(b))}), FPT_ERR_RESULT_NAME, "or none has");
}

TEST_F(DeliverTest, SeveralUnnamedResultsForNamedOutputsAreRefused) {
  EXPECT_FAILS(script().call("pair", {in(x)}, {named("u", out(a)), named("v", out(b))}), FPT_ERR_RESULT_NAME,
               "return a dict");
}

TEST_F(DeliverTest, CountsMustAgree) {
  EXPECT_FAILS(script().call("pair", {in(x)}, {out(a)}), FPT_ERR_RESULT_COUNT,
               "returned 2 results, but there is 1 output");
  EXPECT_FAILS(script().call("one", {in(x)}, {out(a), out(b)}), FPT_ERR_RESULT_COUNT,
               "returned 1 result, but there are 2 outputs");
  EXPECT_FAILS(script().call("nothing", {in(x)}, {out(a)}), FPT_ERR_RESULT_COUNT, "returned 0 results");
  EXPECT_EQ(a, untouched);
}

TEST_F(DeliverTest, WithoutOutputsTheResultIsDropped) {
  EXPECT_OK(script().call("pair", {in(x)}));
  EXPECT_OK(wrong("object()", {})) << "of whatever type it is";
}

TEST_F(DeliverTest, NothingIsBroadcastOrSqueezed) {
  EXPECT_FAILS(wrong("x.reshape(2, 1)", {out(a)}), FPT_ERR_SHAPE,
               "has shape (2, 1), but the output needs (2,), which is (2,) in Fortran");
  EXPECT_FAILS(wrong("x[:1]", {out(a)}), FPT_ERR_SHAPE, "nothing is broadcast or squeezed");
  EXPECT_FAILS(wrong("x[0]", {out(a)}), FPT_ERR_SHAPE, "has shape ()");
  EXPECT_FAILS(wrong("1.5", {out(a)}), FPT_ERR_SHAPE, "is a single number");
  std::vector<double> matrix(6, -1);
  EXPECT_FAILS(wrong("torch.zeros(2, 3, dtype=torch.float64)", {out(matrix, {2, 3})}), FPT_ERR_SHAPE,
               "needs (3, 2), which is (2, 3) in Fortran");
  EXPECT_EQ(a, untouched);
}

TEST_F(DeliverTest, EverythingIsCheckedBeforeTheFirstCopy) {
  EXPECT_FAILS(script().call("second_is_wrong", {in(x)}, {out(a), out(b)}), FPT_ERR_SHAPE, "output 2");
  EXPECT_EQ(a, untouched);
  EXPECT_EQ(b, untouched);
}

TEST_F(DeliverTest, WhatIsNoResultIsRefused) {
  for (const char* expression :
       {"object()", "None, x", "set()", "b'bytes'", "(x, (x, x))", "[[x]]", "lambda: 0", "{1: x}", "x.to_sparse()"}) {
    const test::Outcome outcome = wrong(expression, {out(a)});
    EXPECT_TRUE(outcome.status == FPT_ERR_RESULT_TYPE || outcome.status == FPT_ERR_RESULT_COUNT)
        << expression << ": " << status_name(outcome.status) << " " << outcome.text;
    EXPECT_TRUE(test::contains(outcome.text, "wrong of ")) << outcome.text;
  }
  EXPECT_EQ(a, untouched);
}

TEST_F(DeliverTest, TensorsWithoutDataAreRefused) {
  EXPECT_FAILS(wrong("torch.zeros(2, device='meta')", {out(a)}), FPT_ERR_DEVICE, "meta");
  EXPECT_EQ(a, untouched);
}

TEST_F(DeliverTest, AnOutputMustHaveBeenDescribedAsOne) {
  EXPECT_FAILS(script().call("one", {in(x)}, {in(a)}), FPT_ERR_ARGUMENT, "use torch_out");
  EXPECT_FAILS(script().call("one", {in(x)}, {test::array_arg(a.data(), {2}, FPT_COPY)}), FPT_ERR_ARGUMENT,
               "use torch_out");
  EXPECT_FAILS(script().call("one", {in(x)}, {in("text")}), FPT_ERR_ARGUMENT, "use torch_out");
  EXPECT_FAILS(script().call("one", {in(x)}, {test::array_arg<double>(nullptr, {2}, FPT_OUT)}), FPT_ERR_UNALLOCATED,
               "output 1");
}

TEST_F(DeliverTest, ATensorOfCallersMemoryMayBeTheOutput) {
  const test::Tensor tensor(out(a));
  ASSERT_OK(script().call("one", {in(x)}, {tensor.arg()}));
  EXPECT_EQ(a, (Doubles{2, 3}));
}

TEST_F(DeliverTest, ATensorOfTheScriptIsAnOutput) {
  test::Results results;
  ASSERT_OK(script().call("one", {in(x)}, {}, &results.handle));
  test::Tensor tensor;
  ASSERT_EQ(fpt_results_get(results.handle, 1, &tensor.handle), FPT_OK);
  x = {5, 7};
  ASSERT_OK(script().call("one", {in(x)}, {tensor.arg()}));
  fpt_arg output = out(a);
  ASSERT_EQ(fpt_tensor_copy(tensor.handle, &output, 0), FPT_OK);
  EXPECT_EQ(a, (Doubles{6, 8}));
}

TEST_F(DeliverTest, OutputsOfAnyStrideAreFilled) {
  Doubles wide(8, -1);
  ASSERT_OK(script().call("one", {in(x)}, {test::array_arg(&wide[7], {2}, FPT_OUT, {-24})}));
  EXPECT_EQ(wide, (Doubles{-1, -1, -1, -1, 3, -1, -1, 2}));
}

TEST_F(DeliverTest, ResultsOfAnyStrideAreDelivered) {
  Doubles matrix(6), row(2);
  const char* const transposed = "torch.arange(6, dtype=torch.float64).reshape(2, 3).t()";
  ASSERT_OK(wrong(transposed, {out(matrix, {2, 3})}));
  EXPECT_EQ(matrix, (Doubles{0, 3, 1, 4, 2, 5}));
  ASSERT_OK(wrong("torch.ones((), dtype=torch.float64).expand(2)", {out(row)}));
  EXPECT_EQ(row, (Doubles{1, 1}));
  Doubles images(16);
  ASSERT_OK(
      wrong("torch.arange(16, dtype=torch.float64).reshape(1, 4, 2, 2).contiguous(memory_format=torch.channels_last)",
            {out(images, {2, 2, 4, 1})}));
  for (int i = 0; i < 16; ++i) EXPECT_EQ(images[static_cast<std::size_t>(i)], i);
  ASSERT_OK(wrong("torch.zeros(3, 0, dtype=torch.float64)", {out(row, {0, 3})}));
}

TEST_F(DeliverTest, TheLayoutOfTheModuleAppliesToResults) {
  const Script same(outputs_script, {option("layout", "same")});
  Doubles matrix(6);
  const char* const expression = "torch.arange(6, dtype=torch.float64).reshape(2, 3)";
  ASSERT_OK(same.call("wrong", {in(x), in(expression)}, {out(matrix, {2, 3})}));
  EXPECT_EQ(matrix, (Doubles{0, 3, 1, 4, 2, 5}));
  ASSERT_OK(wrong(expression, {out(matrix, {3, 2})}));
  EXPECT_EQ(matrix, (Doubles{0, 1, 2, 3, 4, 5}));
}

TEST_F(DeliverTest, AResultThatIsTheOutputItselfIsLeftAlone) {
  const Script script("import torch\ndef add(x): x += 1; return x\n");
  for (int i = 0; i < 4; ++i) ASSERT_OK(script.call("add", {out(x)}, {out(x)}));
  EXPECT_EQ(x, (Doubles{5, 6}));
}

TEST_F(DeliverTest, AResultThatOverlapsItsOutputIsReadFirst) {
  const Script script(
      "import torch\ndef head(x): return x[:4]\ndef tail(x): return x[1:]\ndef turn(x): return x.reshape(2, 2).t()\n");
  Doubles long_array = {1, 2, 3, 4, 5};
  for (int i = 0; i < 3; ++i) {
    long_array = {1, 2, 3, 4, 5};
    ASSERT_OK(script.call("head", {in(long_array)}, {test::array_arg(&long_array[1], {4}, FPT_OUT)}));
    EXPECT_EQ(long_array, (Doubles{1, 1, 2, 3, 4}));
    long_array = {1, 2, 3, 4, 5};
    ASSERT_OK(script.call("tail", {in(long_array)}, {out(long_array, {4})}));
    EXPECT_EQ(long_array, (Doubles{2, 3, 4, 5, 5}));
    Doubles square = {1, 2, 3, 4};
    ASSERT_OK(script.call("turn", {in(square)}, {out(square, {2, 2})}));
    EXPECT_EQ(square, (Doubles{1, 3, 2, 4}));
  }
}

TEST_F(DeliverTest, MemoryOfADeviceIsRefusedBeforeAnythingRuns) {
  const Script counting("calls = 0\ndef count(x):\n    global calls\n    calls += 1\n    return x + calls\n");
  const fpt_arg there = test::array_arg(static_cast<double*>(test::device_memory()), {2}, FPT_OUT);
  for (int i = 0; i < 3; ++i)
    EXPECT_FAILS(counting.call("count", {in(x)}, {there}), FPT_ERR_DEVICE, "output 1 is in memory of cuda:0: ");
  EXPECT_FAILS(counting.call("count", {in(x)}, {out(a), named("heat", there)}), FPT_ERR_DEVICE, "output 2 (\"heat\")");
  ASSERT_OK(counting.call("count", {in(x)}, {out(a)}));
  EXPECT_EQ(a, (Doubles{2, 3})) << "this call is the first that ran";
  int64_t tensor = 0;
  fpt_arg described = there;
  ASSERT_OK(test::outcome(fpt_tensor_set(&tensor, &described)));
  EXPECT_FAILS(counting.call("count", {in(x)}, {tensor_argument(tensor)}), FPT_ERR_DEVICE, "output 1");
  free_tensor(tensor);
}

TEST_F(DeliverTest, NumPyGetsNoMemoryOfADevice) {
  const Script counting(
      "ftn_pytorch_framework = 'numpy'\ncalls = 0\n"
      "def count(x, y=0):\n    global calls\n    calls += 1\n    return x + calls\n");
  auto* const memory = static_cast<double*>(test::device_memory());
  const fpt_arg there = test::array_arg(memory, {2});
  const char* const text = " of count: the array is in memory of cuda:0, and the script uses NumPy";
  for (int i = 0; i < 3; ++i) {
    EXPECT_FAILS(counting.call("count", {there}, {out(a)}), FPT_ERR_DEVICE, std::string("input 1") + text);
    EXPECT_FAILS(counting.call("count", {in(x), named("y", there)}, {out(a)}), FPT_ERR_DEVICE,
                 std::string("input 2 (\"y\")") + text);
    EXPECT_FAILS(counting.call("count", {test::array_arg(memory, {2}, FPT_OUT)}), FPT_ERR_DEVICE, text);
    EXPECT_FAILS(counting.call("count", {in(x)}, {test::array_arg(memory, {2}, FPT_OUT)}), FPT_ERR_DEVICE,
                 "output 1 is in memory of cuda:0: results of NumPy cannot go there");
  }
  ASSERT_OK(counting.call("count", {in(x)}, {out(a)}));
  EXPECT_EQ(a, (Doubles{2, 3})) << "this call is the first that ran";
}

}  // namespace
}  // namespace fpt
