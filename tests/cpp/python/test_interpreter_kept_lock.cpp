// SPDX-License-Identifier: MIT
/// The lock that a thread keeps between its calls, for others who use Python and never ask for it; and their end of
/// Python. Each case runs in a process of its own.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "python/interpreter.hpp"
#include "script.hpp"

namespace fpt {
namespace {

using test::in;
using test::out;
using test::outcome;
using test::Script;
using testing::ExitedWithCode;

test::Outcome keep(bool keeps = true) { return outcome(fpt_keep_lock(keeps)); }

/// What code does that knows of no lock.
bool runs_naively(const char* code) {
  Py_Initialize();
  return PyRun_SimpleString(code) == 0;
}

template <class Body>
void on_another_thread(const Body& body) {
  std::thread(body).join();
}

TEST(KeptLock, IsHeldBetweenCalls) {
  ASSERT_OK(keep());
  EXPECT_EQ(PyGILState_Check(), 1);
  const Script script("def f(x): return 2 * x\ndef fails(): raise ValueError('no')");
  std::vector<double> x = {1, 2}, y(2);
  for (int i = 0; i < 4; ++i) {
    ASSERT_OK(script.call("f", {in(x)}, {out(y)}));
    EXPECT_EQ(y[1], 4);
    EXPECT_EQ(script.call("fails").status, FPT_ERR_PYTHON);
    EXPECT_TRUE(runs_naively("import sys\nassert sys.version_info"));
    const PyGILState_STATE state = PyGILState_Ensure();
    EXPECT_TRUE(runs_naively("theirs = 1"));
    PyGILState_Release(state);
    EXPECT_EQ(PyGILState_Check(), 1);
  }
}

TEST(KeptLock, IsReleasedInCalls) {
  ASSERT_OK(keep());
  const Script script(R"(
import threading, time
count = 0
def run():
    global count
    while True: count += 1
threading.Thread(target=run, daemon=True).start()
def wait():
    before, end = count, time.monotonic() + 60
    while count == before and time.monotonic() < end: time.sleep(0.001)
    return float(count - before)
)");
  double counted = 0;
  ASSERT_OK(script.call("wait", {}, {out(counted)}));
  EXPECT_GT(counted, 0);
}

TEST(KeptLock, MayBeKeptAgain) {
  ASSERT_OK(keep());
  EXPECT_OK(keep());
  EXPECT_OK(outcome(fpt_init(nullptr, 0)));
  EXPECT_EQ(PyGILState_Check(), 1);
}

TEST(KeptLock, MayBeGivenBack) {
  const Script script("def f(): return 1");
  EXPECT_OK(keep(false)) << "nobody keeps it";
  for (int i = 0; i < 3; ++i) {
    ASSERT_OK(keep());
    EXPECT_EQ(PyGILState_Check(), 1);
    on_another_thread([&] { EXPECT_EQ(script.call("f").status, FPT_ERR_INTERPRETER); });
    ASSERT_OK(keep(false));
    EXPECT_EQ(PyGILState_Check(), 0);
    on_another_thread([&] { EXPECT_OK(script.call("f")); });
  }
}

TEST(KeptLock, RefusesOtherThreadsAtOnce) {
  ASSERT_OK(keep());
  const Script script("def f(): return 1");
  on_another_thread([&] {
    EXPECT_FAILS(script.call("f"), FPT_ERR_INTERPRETER, "another thread of the program keeps Python's lock");
    EXPECT_FAILS(keep(), FPT_ERR_INTERPRETER, "another thread keeps Python's lock already");
    EXPECT_OK(keep(false)) << "this thread keeps nothing";
    EXPECT_OK(outcome(fpt_init(nullptr, 0))) << "it runs already";
    fpt_module module = 0;
    EXPECT_FAILS(outcome(fpt_module_load(&module, 0, script.path().data(), static_cast<int64_t>(script.path().size()),
                                         nullptr, 0, nullptr, 0)),
                 FPT_ERR_INTERPRETER, "keep_lock of ftn_pytorch_init");
  });
  EXPECT_OK(script.call("f"));
}

extern "C" {
static const Script* of_others = nullptr;
static fpt_status status_of_others = FPT_OK;
static void call_from_another_thread() {
  on_another_thread([] { status_of_others = of_others->call("f").status; });
}
}

TEST(KeptLock, RefusesThemAlsoWhileItsThreadIsInACall) {
  ASSERT_OK(keep());
  const Script script("import ctypes\ndef f(): return 1\ndef g(): ctypes.CFUNCTYPE(None)(" +
                      std::to_string(test::address(reinterpret_cast<void*>(call_from_another_thread))) + ")()");
  of_others = &script;
  ASSERT_OK(script.call("g"));
  EXPECT_EQ(status_of_others, FPT_ERR_INTERPRETER) << "or it would depend on who is faster";
}

const char* const mortals = R"(
import threading
died = 0
class Mortal:
    def __del__(self):
        global died
        died += 1
mortal = Mortal()
def ftn_pytorch_forward(x): return x
def made(): return Mortal()
)";

TEST(KeptLock, WhatOtherThreadsFreeGoesAtTheNextCall) {
  ASSERT_OK(keep());
  const Script script(mortals + std::string("import numpy\ndef array():\n    a = numpy.ones(3).view(type('A', "
                                            "(numpy.ndarray,), {}))\n    a.owner = Mortal()\n    return a\n"));
  fpt_results results = 0;
  ASSERT_OK(script.call("array", {}, {}, &results));
  on_another_thread([&] { fpt_results_free(results); });
  EXPECT_EQ(script.number("died"), 1);
  fpt_module another = 0;
  ASSERT_OK(outcome(fpt_module_load(&another, 0, script.path().data(), static_cast<int64_t>(script.path().size()),
                                    nullptr, 0, nullptr, 0)));
  on_another_thread([&] { fpt_module_free(another); });
  EXPECT_OK(script.call("ftn_pytorch_forward", {in(1.0)}));
}

TEST(KeptLock, LetsAThreadEndThatHasCalledBefore) {
  const Script script("def f(): return 1");
  std::atomic<int> step{0};
  std::thread thread([&] {
    EXPECT_OK(script.call("f"));
    step = 1;
    while (step != 2) std::this_thread::yield();
    EXPECT_EQ(script.call("f").status, FPT_ERR_INTERPRETER);
  });
  while (step != 1) std::this_thread::yield();
  ASSERT_OK(keep());
  step = 2;
  thread.join();
  EXPECT_OK(script.call("f"));
}

TEST(KeptLock, EndsWithItsThread) {
  const Script script("def f(): return 1");
  on_another_thread([&] {
    ASSERT_OK(keep());
    EXPECT_OK(script.call("f"));
  });
  EXPECT_OK(script.call("f"));
  EXPECT_OK(keep());
}

TEST(KeptLock, MayBeReleasedByTheProgram) {
  ASSERT_OK(keep());
  const Script script("def f(): return 1");
  PyThreadState* state = PyEval_SaveThread();
  EXPECT_OK(script.call("f"));
  EXPECT_EQ(PyGILState_Check(), 0);
  PyEval_RestoreThread(state);
  EXPECT_OK(script.call("f"));
}

extern "C" {
static int32_t held_in_procedure = -1;
static fpt_status status_in_procedure = FPT_ERR_INTERNAL, status_of_keeping = FPT_OK;
static fpt_status procedure(void*, const fpt_tensor*, int32_t, fpt_tensor*, int32_t) {
  held_in_procedure = PyGILState_Check();
  status_of_keeping = keep(!held_in_procedure).status;
  status_in_procedure = of_others->call("f").status;
  held_in_procedure += PyGILState_Check();
  return 42;  // it makes nothing
}
}

test::Outcome call_procedure_of_the_program() {
  static const std::string name = "of_the_test";
  static const Script script("def f(): return 1\nimport ftn_pytorch\nof_the_test = ftn_pytorch.procedure('" + name +
                             "')\ndef g(): of_the_test()\n");
  of_others = &script;
  return script.call("g");
}

TEST(KeptLock, IsHeldInProceduresOfTheProgram) {
  ASSERT_OK(keep());
  ASSERT_OK(outcome(fpt_procedure_register("of_the_test", 11, procedure, nullptr, nullptr, 1)));
  EXPECT_FAILS(call_procedure_of_the_program(), FPT_ERR_PYTHON, "failed with status 42");
  EXPECT_EQ(held_in_procedure, 2);
  EXPECT_EQ(status_in_procedure, FPT_OK);
  EXPECT_EQ(status_of_keeping, FPT_ERR_INTERPRETER) << "given back in a call";
}

TEST(KeptLock, CannotBeTakenInAProcedureOfTheProgram) {
  ASSERT_OK(outcome(fpt_procedure_register("of_the_test", 11, procedure, nullptr, nullptr, 1)));
  EXPECT_FAILS(call_procedure_of_the_program(), FPT_ERR_PYTHON, "failed with status 42");
  EXPECT_EQ(held_in_procedure, 0);
  EXPECT_EQ(status_in_procedure, FPT_OK);
  EXPECT_EQ(status_of_keeping, FPT_ERR_INTERPRETER);
}

TEST(KeptLock, OfAnAdoptedInterpreterIsTheHosts) {
  Py_InitializeEx(0);
  ASSERT_OK(keep());
  const Script script("def f(): return 1");
  EXPECT_OK(script.call("f"));
  on_another_thread([&] { EXPECT_EQ(script.call("f").status, FPT_ERR_INTERPRETER); });
  ASSERT_OK(keep(false));
  EXPECT_EQ(PyGILState_Check(), 1) << "it is not ours to give";
}

TEST(KeptLock, OfAnAdoptedInterpreterMustBeHeld) {
  Py_InitializeEx(0);
  PyThreadState* state = PyEval_SaveThread();
  EXPECT_FAILS(keep(), FPT_ERR_INTERPRETER, "another part of the program has started Python");
  const Script script("def f(): return 1");
  EXPECT_OK(script.call("f"));
  PyEval_RestoreThread(state);
  EXPECT_OK(keep());
}

struct EndOfAnother : testing::Test {
  EndOfAnother() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

fpt_module late_module = 0;
fpt_results late_results = 0;

/// Others end Python, and all that is left is let go later, at the end of the program.
void end_by_others() {
  std::atexit([] {
    fpt_results_free(late_results);
    fpt_module_free(late_module);
  });
  const auto* script = new Script("import numpy\ndef f(): return numpy.ones(3)\nprint('loaded', flush=True)");
  script->call("f", {}, {}, &late_results);
  late_module = script->handle();
  PyGILState_Ensure();
  if (Py_FinalizeEx() != 0) std::exit(1);
  int32_t has = -1;
  if (fpt_module_has(late_module, "f", 1, &has) != FPT_OK || has != 0) std::exit(2);
  if (script->call("f").status != FPT_ERR_INTERPRETER) std::exit(3);
  if (fpt_init(nullptr, 0) != FPT_ERR_INTERPRETER) std::exit(4);
  std::exit(7);
}

TEST_F(EndOfAnother, IsNoticedWhereWeHaveStartedPython) { EXPECT_EXIT(end_by_others(), ExitedWithCode(7), ""); }

TEST_F(EndOfAnother, IsNoticedWhereTheLockIsKept) {
  EXPECT_EXIT(
      {
        if (fpt_keep_lock(1) != FPT_OK) std::exit(5);
        end_by_others();
      },
      ExitedWithCode(7), "");
}

TEST_F(EndOfAnother, OnAnotherThreadThanTheKeeperDoesNotHang) {
  EXPECT_EXIT(
      {
        fpt_on_warning(
            [](const char* text, int64_t length) { std::fwrite(text, 1, static_cast<std::size_t>(length), stderr); });
        if (fpt_keep_lock(1) != FPT_OK) std::exit(5);
        new Script("import atexit\natexit.register(print, 'exit function')");
        std::thread([] { std::exit(8); }).join();
      },
      ExitedWithCode(8), "ends on another thread than the one that keeps Python's lock");
}

}  // namespace
}  // namespace fpt
