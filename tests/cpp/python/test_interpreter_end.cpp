// SPDX-License-Identifier: MIT
/// How a process ends, and what traps do to it. Each case runs in a process of its own, which starts another one whose
/// end is looked at.
#include <cfenv>
#include <cstdlib>
#include <thread>

#include "python/interpreter.hpp"
#include "script.hpp"

namespace fpt {
namespace {

using test::in;
using test::out;
using test::Script;
using testing::ExitedWithCode;
using testing::KilledBySignal;

struct ProcessEnd : testing::Test {
  ProcessEnd() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

/// What Python prints goes where the parent looks.
void load(const std::string& source) {
  dup2(STDERR_FILENO, STDOUT_FILENO);
  new Script(source);  // not freed: the process ends first
}

TEST_F(ProcessEnd, KeepsTheExitCodeAndBufferedOutput) {
  EXPECT_EXIT(
      {
        load("import sys\nsys.stdout.write('no newline')");
        std::exit(3);
      },
      ExitedWithCode(3), "no newline");
}

TEST_F(ProcessEnd, RunsPythonsExitFunctionsOnceInTheirOrder) {
  EXPECT_EXIT(
      {
        load("import atexit, torch\natexit.register(print, 'second')\natexit.register(print, 'first')");
        std::exit(0);
      },
      ExitedWithCode(0), "^(Running main[^\n]*\n)?first\nsecond\n(Running main[^\n]*\n)?$");
}

TEST_F(ProcessEnd, WaitsForPythonThreads) {
  EXPECT_EXIT(
      {
        load(R"(
import threading
def run():
    threading.main_thread().join()
    print("waited for")
threading.Thread(target=run).start()
)");
        std::exit(0);
      },
      ExitedWithCode(0), "waited for");
}

TEST_F(ProcessEnd, IsNotHeldUpByADaemonThread) {
  EXPECT_EXIT(
      {
        load(R"(
import threading, torch
def run():
    while True: torch.ones(100).sum()
threading.Thread(target=run, daemon=True).start()
)");
        std::exit(5);
      },
      ExitedWithCode(5), "");
}

TEST_F(ProcessEnd, MayComeFromAnyThread) {
  EXPECT_EXIT(
      {
        load("import atexit\natexit.register(print, 'exit function')");
        std::thread([] { std::exit(4); }).join();
      },
      ExitedWithCode(4), "exit function");
}

extern "C" void exit_with_6() { std::exit(6); }

TEST_F(ProcessEnd, MayComeFromInsideACall) {
  EXPECT_EXIT(
      {
        load("import atexit, ctypes\natexit.register(print, 'exit function')\nctypes.CFUNCTYPE(None)(" +
             std::to_string(test::address(reinterpret_cast<void*>(exit_with_6))) + ")()");
      },
      ExitedWithCode(6), "exit function");
}

TEST_F(ProcessEnd, ByAbortIsAnAbort) {
  EXPECT_EXIT(
      {
        load("import torch");
        std::abort();
      },
      KilledBySignal(SIGABRT), "");
}

fpt_results results_at_exit = 0;

TEST_F(ProcessEnd, HandlesMayBeFreedAfterIt) {
  // as finalizers and static objects of the program do
  EXPECT_EXIT(
      {
        std::atexit([] { fpt_results_free(results_at_exit); });
        load("import torch");
        const Script script("import torch\ndef f(): return torch.ones(3)");
        script.call("f", {}, {}, &results_at_exit);
        std::exit(0);
      },
      ExitedWithCode(0), "");
}

TEST_F(ProcessEnd, AFailingExitFunctionDoesNotChangeIt) {
  EXPECT_EXIT(
      {
        load("import atexit\ndef fail(): raise ValueError('in an exit function')\natexit.register(fail)");
        std::exit(0);
      },
      ExitedWithCode(0), "");
}

TEST_F(ProcessEnd, AHostThatFinalizesItsOwnPythonMayExit) {
  EXPECT_EXIT(
      {
        Py_InitializeEx(0);
        fpt_init(nullptr, 0);
        Py_FinalizeEx();
        std::exit(7);
      },
      ExitedWithCode(7), "");
}

// Traps: a program built with -ffpe-trap=invalid,zero,overflow. Where one is missed the process dies of SIGFPE.

constexpr int traps = FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW;

const char* const computes = R"(
import torch, numpy
def divide(): return torch.isnan(torch.zeros(3) / torch.zeros(3)).all().item()
def logarithm(): return torch.isinf(torch.log(torch.zeros(3))).all().item()
def softmax(): return torch.isnan(torch.softmax(torch.full((3,), -torch.inf), 0)).all().item()
def solve(): return torch.isinf(torch.linalg.solve(torch.eye(3) * 1e-30, torch.full((3, 3), 1e30))).any().item()
def numpy_divide(): return bool(numpy.isnan(numpy.zeros(3) / numpy.zeros(3)).all())
def numpy_exp(): return bool(numpy.isinf(numpy.exp(numpy.full(3, 1e4))).all())
def fails(): raise ValueError(torch.zeros(3) / torch.zeros(3))
class Divides:
    def __del__(self): numpy.zeros(3) / numpy.zeros(3)
def mortal(): t = torch.ones(1); t.owner = Divides(); return t
)";

TEST(Traps, AreNoDangerToImportsAndComputations) {
  feenableexcept(traps);
  fesetround(FE_UPWARD);
  const Script script(computes);
  for (const char* function : {"divide", "logarithm", "softmax", "solve", "numpy_divide", "numpy_exp"})
    for (int i = 0; i < 4; ++i) {
      bool as_expected = false;
      ASSERT_OK(script.call(function, {}, {out(as_expected)})) << function;
      EXPECT_TRUE(as_expected) << function;
      EXPECT_EQ(fegetexcept(), traps) << function;
      EXPECT_EQ(fegetround(), FE_UPWARD) << function;
      EXPECT_EQ(fetestexcept(FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW), 0) << function;
    }
  fedisableexcept(FE_ALL_EXCEPT);
  fesetround(FE_TONEAREST);
}

TEST(Traps, AreOnAgainAfterAnException) {
  feenableexcept(traps);
  const Script script(computes);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(script.call("fails").status, FPT_ERR_PYTHON);
  EXPECT_EQ(fegetexcept(), traps);
  EXPECT_EQ(fetestexcept(FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW), 0);
  fedisableexcept(FE_ALL_EXCEPT);
}

TEST(Traps, AreNoDangerToPythonCodeThatRunsWhenObjectsAreFreed) {
  const Script script(computes);
  feenableexcept(traps);
  fpt_results results = 0;
  ASSERT_OK(script.call("mortal", {}, {}, &results));
  fpt_results_free(results);

  test::Tensor tensor;
  ASSERT_OK(script.call("mortal", {}, {}, &(results = 0)));
  ASSERT_EQ(fpt_results_get(results, 1, &tensor.handle), FPT_OK);
  fpt_results_free(results);
  double value = 0;
  fpt_arg arg = out(value);
  ASSERT_EQ(fpt_tensor_set(&tensor.handle, &arg), FPT_OK);
  EXPECT_EQ(fegetexcept(), traps);
  fedisableexcept(FE_ALL_EXCEPT);
}

TEST_F(ProcessEnd, ExitFunctionsMayDivideByZeroWhereTheProgramTraps) {
  EXPECT_EXIT(
      {
        load("import atexit, numpy\natexit.register(lambda: print(numpy.zeros(1) / numpy.zeros(1)))");
        feenableexcept(traps);
        std::exit(0);
      },
      ExitedWithCode(0), "nan");
}

}  // namespace
}  // namespace fpt
