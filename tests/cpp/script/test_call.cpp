// SPDX-License-Identifier: MIT
/// How arguments reach a script. What is checked after the call is in test_call_checks.cpp.
#include <thread>

#include "script.hpp"
#include "script/call.hpp"

namespace fpt {
namespace {

using test::in;
using test::named;
using test::option;
using test::out;
using test::Script;

const char* const describes = R"(
import torch
def kind(*args): return " ".join(f"{type(a).__name__}={a}" for a in args)
def shape(x): return str(tuple(x.shape))
def stride(x): return str(tuple(x.stride()))
def dtype(x): return str(x.dtype)
def address(x): return x.data_ptr()
def first(x): return x.flatten()[0].item()
def item(x, i, j): return x[i, j].item()
def keywords(**named): return ",".join(named)
def after(a, *, dt): return f"{a.item()} {dt}"
)";

struct CallTest : testing::Test {
  static void SetUpTestSuite() { script_ = new Script(describes); }
  static void TearDownTestSuite() { delete script_; }
  static const Script& script() { return *script_; }

  std::string text_of(const std::string& function, std::vector<fpt_arg> inputs, const Script& from = script()) {
    std::string text(1000, ' ');
    EXPECT_OK(from.call(function, std::move(inputs), {out(text)}));
    return trimmed(text.data(), 1000);
  }

  int64_t address_seen(fpt_arg arg, const Script& from = script()) {
    int64_t seen = 0;
    EXPECT_OK(from.call("address", {arg}, {out(seen)}));
    return seen;
  }

 private:
  static Script* script_;
};

Script* CallTest::script_ = nullptr;

TEST_F(CallTest, ScalarsArriveAsPythonNumbers) {
  EXPECT_EQ(text_of("kind", {in(int8_t{-8}), in(int16_t{-300}), in(int32_t{70000}), in(int64_t{1} << 40)}),
            "int=-8 int=-300 int=70000 int=1099511627776");
  EXPECT_EQ(text_of("kind", {in(0.5f), in(-2.25)}), "float=0.5 float=-2.25");
}

TEST_F(CallTest, ComplexScalarsArriveAsPythonComplex) {
  std::complex<float> single{1.5f, -2};
  std::complex<double> full{0.5, 8};
  EXPECT_EQ(text_of("kind", {test::array_arg(&single, {}), test::array_arg(&full, {})}),
            "complex=(1.5-2j) complex=(0.5+8j)");
}

TEST_F(CallTest, LogicalScalarsArriveAsBool) {
  int32_t yes = 1;
  fpt_arg logical;
  fpt_arg_array(&logical, &yes, FPT_LOGICAL32, 0, nullptr, nullptr, FPT_IN);
  EXPECT_EQ(text_of("kind", {in(true), in(false), logical}), "bool=True bool=False bool=True");
}

TEST_F(CallTest, TextArrivesAsStr) {
  EXPECT_EQ(text_of("kind", {in("gr\xC3\xBC\xC3\x9F dich   ")}), "str=gr\xC3\xBC\xC3\x9F dich");
  EXPECT_EQ(text_of("kind", {in(std::string(300, 'x').c_str())}), "str=" + std::string(300, 'x'));
  EXPECT_EQ(text_of("kind", {in("")}), "str=");
}

TEST_F(CallTest, TextThatIsNoUtf8ArrivesWithReplacements) {
  EXPECT_EQ(text_of("kind", {in("a\xFFz")}), "str=a\xEF\xBF\xBDz");
}

TEST_F(CallTest, ArraysAreNotCopied) {
  std::vector<double> x(6);
  // first calls, then cached ones
  for (int i = 0; i < 5; ++i) EXPECT_EQ(address_seen(in(x)), test::address(x.data()));
}

TEST_F(CallTest, EveryElementTypeArrivesAsItsOwn) {
  std::vector<char> memory(64);
  const auto seen = [&](int32_t type) {
    fpt_arg arg;
    const int64_t n = 2;
    fpt_arg_array(&arg, memory.data(), type, 1, &n, nullptr, FPT_IN);
    return text_of("dtype", {arg});
  };
  for (const int32_t type :
       {FPT_BOOL, FPT_INT8, FPT_INT16, FPT_INT32, FPT_INT64, FPT_FLOAT32, FPT_FLOAT64, FPT_COMPLEX64, FPT_COMPLEX128})
    EXPECT_EQ(seen(type), std::string("torch.") + dtype_name(type));
}

TEST_F(CallTest, TheFortranOrderIsReversed) {
  std::vector<double> x = {11, 21, 12, 22, 13, 23};  // x(i,j) = 10 i + j, (2,3) in Fortran
  EXPECT_EQ(text_of("shape", {in(x, {2, 3})}), "(3, 2)");
  EXPECT_EQ(text_of("stride", {in(x, {2, 3})}), "(2, 1)");
  double value = 0;
  ASSERT_OK(script().call("item", {in(x, {2, 3}), in(int32_t{2}), in(int32_t{0})}, {out(value)}));
  EXPECT_EQ(value, 13);
}

TEST_F(CallTest, TheFortranOrderIsKeptWithLayoutSame) {
  const Script same(describes, {option("layout", "same")});
  std::vector<double> x = {11, 21, 12, 22};  // square, not symmetric
  EXPECT_EQ(text_of("stride", {in(x, {2, 2})}, same), "(1, 2)");
  double value = 0;
  for (int i = 0; i < 4; ++i) {
    ASSERT_OK(same.call("item", {in(x, {2, 2}), in(int32_t{1}), in(int32_t{0})}, {out(value)}));
    EXPECT_EQ(value, 21);
    ASSERT_OK(script().call("item", {in(x, {2, 2}), in(int32_t{1}), in(int32_t{0})}, {out(value)}));
    EXPECT_EQ(value, 12);
  }
  EXPECT_EQ(address_seen(in(x, {2, 2}), same), test::address(x.data()));
}

TEST_F(CallTest, SectionsAreViews) {
  std::vector<double> x(24);
  const fpt_arg section = test::array_arg(&x[1], {2, 3}, FPT_IN, {16, 64});
  EXPECT_EQ(address_seen(section), test::address(&x[1]));
  EXPECT_EQ(text_of("stride", {section}), "(8, 2)");
}

TEST_F(CallTest, AllRanksUpToSevenArrive) {
  std::vector<float> x(128);
  for (std::size_t rank = 1; rank <= 7; ++rank) {
    std::vector<int64_t> extents(rank, 1);
    extents[0] = 2;
    EXPECT_EQ(address_seen(in(x, extents)), test::address(x.data())) << rank;
  }
}

TEST_F(CallTest, ZeroSizeArraysArriveWithTheirShape) {
  std::vector<double> x(1);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(text_of("shape", {in(x, {3, 0})}), "(0, 3)");
}

TEST_F(CallTest, ScalarOutputsArriveAsArraysWithoutAxes) {
  double variable = 4;
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(text_of("shape", {out(variable)}), "()");
    EXPECT_EQ(address_seen(out(variable)), test::address(&variable));
  }
}

TEST_F(CallTest, NegativeStridesAreRefusedWithAdvice) {
  std::vector<double> x(4);
  EXPECT_FAILS(script().call("shape", {test::array_arg(&x[3], {4}, FPT_IN, {-8})}), FPT_ERR_STRIDE,
               "torch.flip), or torch_copy of a section that is only read");
  EXPECT_FAILS(script().call("shape", {test::array_arg(&x[3], {4}, FPT_IN, {-8})}), FPT_ERR_STRIDE, "input 1 of shape");
}

TEST_F(CallTest, TheNegativeStrideOfASingleElementIsFine) {
  std::vector<double> x(4);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(text_of("shape", {test::array_arg(&x[3], {1, 2}, FPT_IN, {-8, 16})}), "(2, 1)");
}

TEST_F(CallTest, TheOddStrideOfASingleElementIsFine) {
  std::vector<double> x(4);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(address_seen(test::array_arg(&x[1], {1}, FPT_IN, {12})), test::address(&x[1]));
}

TEST_F(CallTest, ACopyArrivesInsteadOfTheArrayAndLivesForOneCall) {
  std::vector<double> x = {1, 2, 3};
  for (int i = 0; i < 4; ++i) {
    const fpt_arg backwards = test::array_arg(&x[2], {3}, FPT_COPY, {-8});
    double value = 0;
    ASSERT_OK(script().call("first", {backwards}, {out(value)}));
    EXPECT_EQ(value, 3);
    EXPECT_FAILS(script().call("first", {backwards}, {out(value)}), FPT_ERR_FREED, "torch_copy lives for one call");
  }
}

TEST_F(CallTest, NamesMakeKeywordArgumentsInTheOrderGiven) {
  EXPECT_EQ(text_of("keywords", {named("b", in(1.0)), named("a", in(2.0))}), "b,a");
  EXPECT_EQ(text_of("keywords", {named("a", in(1.0)), named("c", in(2.0))}), "a,c");
}

TEST_F(CallTest, NamedArgumentsMayFollowUnnamedOnes) {
  std::vector<double> x = {7};
  for (int i = 0; i < 4; ++i) EXPECT_EQ(text_of("after", {in(x), named("dt", in(0.5))}), "7.0 0.5");
}

TEST_F(CallTest, TwoArgumentsOfOneNameAreRefused) {
  const Script takes_all("def f(*positional, **values): return float(len(values))");
  double count = 0;
  for (int i = 0; i < 4; ++i) {
    EXPECT_FAILS(
        takes_all.call("f", {in(1.0), named("a", in(1.0)), named("b", in(2.0)), named("a", in(3.0))}, {out(count)}),
        FPT_ERR_ARGUMENT, "two arguments of f are called \"a\"");
    ASSERT_OK(takes_all.call("f", {named("a", in(1.0)), named("b", in(2.0))}, {out(count)}));
    EXPECT_EQ(count, 2);
  }
}

TEST(KeywordNames, OfFirstCallsFromTwoThreadsAreTheirOwn) {
  const Script script(R"(
import threading, time
from ftn_pytorch.runners.script import ScriptRunner
original, arrived = ScriptRunner.first_call, threading.Semaphore(0)
def first_call(self, name, args, kwargs):
    original(self, name, args, kwargs)
    if name == 'f':
        arrived.release()
        while arrived._value < 2: time.sleep(1e-3)
ScriptRunner.first_call = first_call
def end(): ScriptRunner.first_call = original
def f(**values): return ' '.join(values)
)");
  std::string names[2] = {std::string(10, ' '), std::string(10, ' ')};
  const auto call = [&](int i) {
    EXPECT_OK(script.call("f", {named(i ? "b" : "a", in(1.0)), named("x", in(1.0))}, {out(names[i])}));
  };
  std::thread other(call, 0);
  call(1);
  other.join();
  ASSERT_OK(script.call("end"));
  EXPECT_EQ(names[0], "a x       ");
  EXPECT_EQ(names[1], "b x       ");
}

TEST_F(CallTest, AnUnnamedArgumentAfterANamedOneIsRefused) {
  EXPECT_FAILS(script().call("after", {named("dt", in(0.5)), in(1.0)}), FPT_ERR_ARGUMENT,
               "input 2 of after has no name but follows named arguments");
}

TEST_F(CallTest, WhatWasWrongInADescriptionIsToldByTheCall) {
  std::vector<double> x(2);
  const fpt_arg none = test::array_arg<double>(nullptr, {2});
  EXPECT_FAILS(script().call("shape", {none}), FPT_ERR_UNALLOCATED, "input 1 of shape has no memory");
  EXPECT_FAILS(script().call("after", {in(x), named("dt", none)}), FPT_ERR_UNALLOCATED, "input 2 (\"dt\") of after");
  EXPECT_FAILS(script().call("kind", {test::array_arg(x.data(), {2}, FPT_IN, {9})}), FPT_ERR_STRIDE, "every 9 bytes");
  EXPECT_FAILS(script().call("kind", {named(std::string(64, 'n'), in(1.0))}), FPT_ERR_ARGUMENT, "has 64 characters");
}

TEST_F(CallTest, AsManyAsPythonCanTakeArrive) {
  EXPECT_EQ(script().call("kind", std::vector<fpt_arg>(256, in(1.0))).status, FPT_OK);
  EXPECT_FAILS(script().call("kind", std::vector<fpt_arg>(257, in(1.0))), FPT_ERR_ARGUMENT, "more than 256 arguments");
}

TEST_F(CallTest, AFunctionThatIsMissingIsToldByName) {
  EXPECT_FAILS(script().call("nonsense"), FPT_ERR_HOOK, "nonsense");
  EXPECT_FAILS(script().forward({}), FPT_ERR_HOOK, "ftn_pytorch_forward");
  EXPECT_FAILS(script().call(""), FPT_ERR_HOOK, "");
}

TEST_F(CallTest, ASignatureThatDoesNotFitIsToldBeforeTheFunctionRuns) {
  EXPECT_FAILS(script().call("after", {in(1.0)}), FPT_ERR_SIGNATURE, "dt");
  EXPECT_FAILS(script().call("shape", {in(1.0), in(2.0)}), FPT_ERR_SIGNATURE, "shape");
}

TEST(CallFailure, OfArgumentsThatDoNotFitIsToldInLaterCallsOfADecoratedFunctionToo) {
  const Script script(R"(
import torch
@torch.no_grad()
def adds(x, y): return x + y
def fails(x): return x + "a"
)");
  std::vector<float> x(2);
  for (int i = 0; i < 4; ++i) {
    EXPECT_OK(script.call("adds", {in(x), in(x)}));
    EXPECT_FAILS(script.call("adds", {in(x)}), FPT_ERR_SIGNATURE, "defines adds(x, y)");
    EXPECT_FAILS(script.call("fails", {in(x)}), FPT_ERR_PYTHON, "TypeError");
  }
}

TEST(CallFailure, EndsWithWhatArrived) {
  const Script script("import torch\ndef fails(x, n=1, *, out=None): return x @ torch.ones(3, 1)");
  std::vector<float> values(30), result(10);
  for (int i = 0; i < 4; ++i) {
    const test::Outcome outcome = script.call("fails", {in(values, {10, 3}), named("n", in(5))});
    EXPECT_FAILS(outcome, FPT_ERR_PYTHON, "\n  x: float32 (3, 10), Fortran (10, 3)\n  n: 5\n");
    EXPECT_FAILS(outcome, FPT_ERR_PYTHON, "layout=\"same\"");
  }
  EXPECT_FAILS(script.call("fails", {in(values, {10, 3})}, {out(result)}), FPT_ERR_PYTHON, "\n  out: float32 (10,)");
}

TEST(CallFailure, IsAPythonErrorWithTracebackAndTheNextCallWorks) {
  const Script script(R"(
def inner(x):
    raise ValueError("too dry")
def fails(x): return inner(x)
def works(x): return 2 * x
)");
  double value = 0;
  for (int i = 0; i < 4; ++i) {
    const test::Outcome outcome = script.call("fails", {in(1.0)});
    EXPECT_FAILS(outcome, FPT_ERR_PYTHON, "ValueError: too dry");
    EXPECT_FAILS(outcome, FPT_ERR_PYTHON, "Traceback");
    EXPECT_FAILS(outcome, FPT_ERR_PYTHON, script.path() + "\", line 3, in inner");
    ASSERT_OK(script.call("works", {in(1.0)}, {out(value)}));
    EXPECT_EQ(value, 2);
  }
}

TEST(CallFailure, OfAScriptThatExitsIsAPythonError) {
  const Script script(R"(
import sys
def leaves(): sys.exit(3)
def interrupts(): raise KeyboardInterrupt
def stops(): raise StopIteration
def works(): return 1
)");
  EXPECT_FAILS(script.call("leaves"), FPT_ERR_PYTHON, "SystemExit: 3");
  EXPECT_FAILS(script.call("interrupts"), FPT_ERR_PYTHON, "KeyboardInterrupt");
  EXPECT_FAILS(script.call("stops"), FPT_ERR_PYTHON, "StopIteration");
  EXPECT_OK(script.call("works"));
}

TEST(CallFailure, OfMemoryHasItsOwnStatus) {
  const Script script("def eats(): raise MemoryError('no more')");
  EXPECT_FAILS(script.call("eats"), FPT_ERR_MEMORY, "no more");
}

TEST(CallFailure, OfAnExceptionThatCannotBePrintedIsStillTold) {
  const Script script(R"(
class Nasty(Exception):
    def __str__(self): raise RuntimeError("no text")
def fails(): raise Nasty()
def odd(): raise ValueError("lone surrogate \udcff")
)");
  EXPECT_FAILS(script.call("fails"), FPT_ERR_PYTHON, "Nasty");
  EXPECT_FAILS(script.call("odd"), FPT_ERR_PYTHON, "lone surrogate \\udcff");
}

TEST(CallFailure, OfDeepRecursionIsAPythonError) {
  const Script script("def down(): return down()");
  EXPECT_FAILS(script.call("down"), FPT_ERR_PYTHON, "RecursionError");
}

}  // namespace
}  // namespace fpt
