// SPDX-License-Identifier: MIT
/// Names, results and exceptions that no well-meant script has: each is an error with a text, and the next call works.
#include "script.hpp"

namespace fpt {
namespace {

using test::contains;
using test::in;
using test::named;
using test::out;
using test::Script;

const char* const latin1 = "caf\xe9";  // no UTF-8, as a source file in Latin-1 has it
const char* const theta = "\xce\xb8";  // UTF-8

TEST(KeywordName, ThatIsNotUtf8IsRefusedInEveryCall) {
  const Script script("def f(**values): return 1.0");
  double value = 0;
  for (int i = 0; i < 4; ++i) {
    ASSERT_OK(script.call("f", {named("x", in(1.0))}, {out(value)}));
    EXPECT_NE(script.call("f", {named(latin1, in(1.0))}, {out(value)}).status, FPT_OK);
  }
}

TEST(KeywordName, MayBeAnyIdentifierOfPython) {
  const Script script(std::string("def f(") + theta + "): return {'" + theta + "': 2 * " + theta + "}");
  double value = 0;
  for (int i = 0; i < 3; ++i) {
    ASSERT_OK(script.call("f", {named(theta, in(1.5))}, {named(theta, out(value))}));
    EXPECT_EQ(value, 3);
    EXPECT_FAILS(script.call("f", {named(theta, in(1.5))}, {named(latin1, out(value))}), FPT_ERR_RESULT_NAME, theta);
  }
}

TEST(TrainResult, WhoseLengthFailsIsAnErrorOfTheScript) {
  Script script(R"(
class Broken(list):
    def __len__(self): raise KeyError('no length')
class Item(list):
    def __getitem__(self, i): raise KeyError('no item')
def ftn_pytorch_train(x, target): return Broken([True, 1.0]) if x > 0 else Item([True, 1.0])
def g(): return 1.0
)");
  double value = 0;
  for (int i = 0; i < 3; ++i) {
    EXPECT_FAILS(script.train({in(1.0)}, {in(1.0)}), FPT_ERR_PYTHON, "no length");
    ASSERT_OK(script.call("g", {}, {out(value)})) << "no exception is left behind";
    EXPECT_FAILS(script.train({in(-1.0)}, {in(1.0)}), FPT_ERR_PYTHON, "no item");
    ASSERT_OK(script.call("g", {}, {out(value)}));
  }
}

TEST(Function, ThatDidNothingBecauseItYieldsOrAwaitsIsRefusedWithoutOutputsToo) {
  const Script script(R"(
ran = []
async def coroutine(): ran.append(1)
def generator():
    ran.append(1)
    yield 1
)");
  for (int i = 0; i < 3; ++i) {
    EXPECT_FAILS(script.call("coroutine"), FPT_ERR_RESULT_TYPE, "async def");
    EXPECT_FAILS(script.call("generator"), FPT_ERR_RESULT_TYPE, "yield");
  }
  EXPECT_TRUE(script.truth("ran == []"));
}

TEST(Memory, ThatTorchCannotAllocateIsAMemoryError) {
  const Script script("import torch, numpy\ndef f(n): return torch.empty(n)\ndef g(n): return numpy.empty(n)");
  for (int i = 0; i < 3; ++i) {
    EXPECT_FAILS(script.call("f", {in(int64_t{1} << 52)}), FPT_ERR_MEMORY, "memory");
    EXPECT_FAILS(script.call("g", {in(int64_t{1} << 52)}), FPT_ERR_MEMORY, "allocate");
  }
}

TEST(ZeroSize, ArraysMayHaveHugeExtentsInAnyPlace) {
  const Script script("import torch\ndef f(x): return list(x.shape)[0] * 1.0");
  double value = 0, element = 0;
  const int64_t huge = int64_t{1} << 40;
  for (int i = 0; i < 4; ++i) {
    for (const std::vector<int64_t>& extents : {std::vector<int64_t>{0, huge}, {huge, 0}, {huge, 0, 0, 7}}) {
      ASSERT_OK(script.call("f", {test::array_arg(&element, extents)}, {out(value)}));
      EXPECT_EQ(value, static_cast<double>(extents.back()));
    }
    for (const std::vector<int64_t>& extents : {std::vector<int64_t>{0, huge, huge}, {huge, 0, huge}, {huge, huge, 0}})
      EXPECT_FAILS(script.call("f", {named("x", test::array_arg(&element, extents, FPT_IN))}), FPT_ERR_ARGUMENT,
                   "with an extent of 1099511627776 it reaches over more than 2^63 bytes");
  }
}

TEST(HugeArrays, ThatNoMemoryCanHoldAreRefused) {
  const Script script("import torch\ndef f(x): pass");
  double element = 0;
  const int64_t huge = int64_t{1} << 31, far = int64_t{1} << 62;
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(script.call("f", {test::array_arg(&element, {huge, huge})}).status, FPT_ERR_ARGUMENT);
    EXPECT_FAILS(script.call("f", {test::array_arg(&element, {3}, FPT_IN, {far})}), FPT_ERR_ARGUMENT, "extent of 3 ");
    EXPECT_EQ(script.call("f", {test::array_arg(&element, {2, 2}, FPT_OUT, {far, far})}).status, FPT_ERR_ARGUMENT);
    EXPECT_EQ(script.call("f", {test::array_arg(&element, {3}, FPT_IN, {-far})}).status, FPT_ERR_ARGUMENT);
    EXPECT_OK(script.call("f", {test::array_arg(&element, {1}, FPT_IN, {far})})) << "the stride is never used";
    EXPECT_OK(script.call("f", {test::array_arg(&element, {3, 0}, FPT_IN, {far, 8})})) << "nothing to reach";
  }
}

TEST(Configuration, TakesNoLogicalByReference) {
  const test::Folder folder;
  const std::string file = folder.write("configured.py", "def ftn_pytorch_setup(flag): pass").string();
  int32_t flag = 1;
  fpt_arg config;
  fpt_module module = 0;
  fpt_arg_array(&config, &flag, FPT_LOGICAL32, 0, nullptr, nullptr, FPT_OUT);
  fpt_arg_name(&config, "flag", 4);
  const auto size = static_cast<int64_t>(file.size());
  EXPECT_FAILS(test::outcome(fpt_module_load(&module, 0, file.data(), size, nullptr, 0, &config, 1)), FPT_ERR_KIND,
               "config 1 (\"flag\") is logical of 4 bytes passed by reference: pass it with torch_in");
}

TEST(Description, ThatFailsHasItsTextAtOnce) {
  fpt_arg arg;
  const int64_t extent = 1;
  double element = 0;
  EXPECT_FAILS(test::outcome(fpt_arg_array(&arg, nullptr, FPT_FLOAT64, 1, &extent, nullptr, FPT_IN)),
               FPT_ERR_UNALLOCATED, "the array has no memory");
  EXPECT_FAILS(test::outcome(fpt_arg_array(&arg, &element, 99, 1, &extent, nullptr, FPT_IN)), FPT_ERR_KIND,
               "type code 99");
  EXPECT_FAILS(test::outcome(fpt_arg_text(&arg, nullptr, 3, FPT_IN)), FPT_ERR_UNALLOCATED, "the string");
  fpt_arg_array(&arg, &element, FPT_FLOAT64, 0, nullptr, nullptr, FPT_IN);
  EXPECT_FAILS(test::outcome(fpt_arg_name(&arg, "", 0)), FPT_ERR_ARGUMENT, "its name is empty");
}

TEST(Recursion, ToTheLimitIsAnErrorAndTheNextCallWorks) {
  const Script script("def f(n): return f(n + 1)\ndef g(): return 1.0");
  double value = 0;
  for (int i = 0; i < 3; ++i) {
    EXPECT_FAILS(script.call("f", {in(1)}, {out(value)}), FPT_ERR_PYTHON, "RecursionError");
    ASSERT_OK(script.call("g", {}, {out(value)}));
  }
}

TEST(BaseException, OfAnyKindIsAStatus) {
  const Script script(R"(
import sys
class Odd(BaseException):
    def __str__(self): raise RuntimeError('cannot be printed')
def leave(): sys.exit(7)
def interrupt(): raise KeyboardInterrupt
def stop(): raise GeneratorExit
def odd(): raise Odd
def memory(): raise MemoryError
def group(): raise ExceptionGroup('several', [ValueError(1), TypeError(2)])
def chain():
    try: 1 / 0
    except ZeroDivisionError as e: raise ValueError('outer') from e
def loop():
    e = ValueError('loop'); e.__context__ = e; raise e
)");
  for (int i = 0; i < 3; ++i) {
    EXPECT_FAILS(script.call("leave"), FPT_ERR_PYTHON, "SystemExit: 7");
    EXPECT_FAILS(script.call("interrupt"), FPT_ERR_PYTHON, "KeyboardInterrupt");
    EXPECT_FAILS(script.call("stop"), FPT_ERR_PYTHON, "GeneratorExit");
    EXPECT_FAILS(script.call("odd"), FPT_ERR_PYTHON, "Odd");
    EXPECT_FAILS(script.call("memory"), FPT_ERR_MEMORY, "MemoryError");
    EXPECT_EQ(script.call("group").status, FPT_ERR_PYTHON);
    EXPECT_FAILS(script.call("chain"), FPT_ERR_PYTHON, "ZeroDivisionError");
    EXPECT_FAILS(script.call("loop"), FPT_ERR_PYTHON, "loop");
  }
}

}  // namespace
}  // namespace fpt
