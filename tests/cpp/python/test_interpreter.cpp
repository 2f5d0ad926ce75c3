// SPDX-License-Identifier: MIT
/// How the interpreter starts, and what it leaves alone. Each case is run in a process of its own. The end of a process
/// is in test_interpreter_end.cpp.
#include <sys/stat.h>

#include <atomic>
#include <chrono>
#include <clocale>
#include <csignal>
#include <cstring>
#include <thread>

#include "python/environment.hpp"
#include "python/interpreter.hpp"
#include "script.hpp"

extern char** environ;

namespace fpt {
namespace {

using test::in;
using test::out;
using test::outcome;
using test::Script;

test::Outcome init(const std::string& python = {}) {
  return outcome(fpt_init(python.data(), static_cast<int64_t>(python.size())));
}

std::string build_python() { return std::getenv("FTN_PYTORCH_PYTHON"); }

TEST(Interpreter, StartsOnce) {
  ASSERT_OK(init());
  EXPECT_OK(init());
  EXPECT_OK(init("/nowhere/python")) << "it runs already";
}

TEST(Interpreter, StartsByItselfOnFirstUse) {
  EXPECT_EQ(Py_IsInitialized(), 0);
  const Script script("def f(): return 42");
  EXPECT_NE(Py_IsInitialized(), 0);
  EXPECT_EQ(script.number("f()"), 42);
}

TEST(Interpreter, RefusesATorchWithoutTheExchangeApi) {
  const Script script("import torch\ndel torch.Tensor.__dlpack_c_exchange_api__\ndef f(x): return 1.0");
  std::vector<double> x = {1, 2};
  double sum = 0;
  EXPECT_FAILS(script.call("f", {in(x)}, {out(sum)}), FPT_ERR_VERSION, "install torch 2.10 or newer");
  EXPECT_EQ(sum, 0);
}

TEST(Interpreter, DoesNotStartForDescriptionsAndEmptyHandles) {
  std::vector<double> x(2);
  const test::Tensor tensor(out(x));
  fpt_module_free(0);
  fpt_module_free(123);
  fpt_results_free(0);
  EXPECT_EQ(Py_IsInitialized(), 0);
}

TEST(Interpreter, MayBeStartedByAnyThread) {
  std::thread([] { ASSERT_OK(init()); }).join();
  const Script script("import numpy\ndef f(x): return float(x.sum())");
  std::vector<double> x = {1, 2};
  double sum = 0;
  ASSERT_OK(script.call("f", {in(x)}, {out(sum)}));
  EXPECT_EQ(sum, 3);
  std::thread([&] { EXPECT_OK(script.call("f", {in(x)}, {out(sum)})); }).join();
}

TEST(Interpreter, MayBeStartedByManyThreadsAtOnce) {
  std::atomic<int> ready{0}, good{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&] {
      ++ready;
      while (ready < 8) std::this_thread::yield();
      if (init().status == FPT_OK) ++good;
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(good, 8);
}

TEST(Interpreter, ServesManyThreadsAtOnce) {
  const Script script("import torch\ndef f(x, i): return 2 * x + i");
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      std::vector<double> x = {1.0 * t}, y = {-1};
      for (int i = 0; i < 200; ++i)
        if (script.call("f", {in(x), in(i)}, {out(y)}).status != FPT_OK || y[0] != 2 * t + i) ++wrong;
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Interpreter, IsTheOneThatWasNamed) {
  ASSERT_OK(init(build_python() + "   "));
  const Script script("import sys, multiprocessing.spawn");
  EXPECT_EQ(script.text("sys.executable"), build_python());
  EXPECT_EQ(script.text("multiprocessing.spawn.get_executable().decode()"), build_python()) << "not this program";
  EXPECT_EQ(interpreter_info().reason, "argument of ftn_pytorch_init");
  EXPECT_FALSE(interpreter_info().adopted);
}

TEST(Interpreter, StartsWorkersThatArePython) {
  // were sys.executable this program, each worker would run all its cases again
  fpt_module module = 0;
  const std::string file = INTERPRETER_SCRIPTS "/spawn.py";  // not by __FILE__, which ccache may shorten
  ASSERT_OK(
      outcome(fpt_module_load(&module, 0, file.data(), static_cast<int64_t>(file.size()), nullptr, 0, nullptr, 0)));
  double sum = 0;
  fpt_arg output = out(sum);
  ASSERT_OK(outcome(fpt_module_call(module, "workers", 7, nullptr, 0, &output, 1, nullptr)));
  EXPECT_EQ(sum, 14);
}

/// Start Python as a host program would that embeds one itself.
void start_as_host() {
  PyConfig config;
  PyConfig_InitPythonConfig(&config);
  PyConfig_SetBytesString(&config, &config.executable, build_python().c_str());
  ASSERT_FALSE(PyStatus_Exception(Py_InitializeFromConfig(&config)));
  PyConfig_Clear(&config);
}

TEST(AdoptedInterpreter, ServesWhileItsHostHoldsTheLock) {
  start_as_host();
  const Script script("import numpy\ndef f(x): return float(x.sum())");
  std::vector<double> x = {1, 2};
  double sum = 0;
  for (int i = 0; i < 4; ++i) ASSERT_OK(script.call("f", {in(x)}, {out(sum)}));
  EXPECT_EQ(sum, 3);
  EXPECT_TRUE(interpreter_info().adopted);
  EXPECT_EQ(PyGILState_Check(), 1) << "the lock is still the host's";
}

TEST(AdoptedInterpreter, ServesWhileNobodyHoldsTheLock) {
  start_as_host();
  PyThreadState* state = PyEval_SaveThread();
  {
    const Script script("def f(): return 42");
    EXPECT_EQ(script.number("f()"), 42);
    std::thread([&] { EXPECT_EQ(script.number("f()"), 42); }).join();
  }
  EXPECT_EQ(PyGILState_Check(), 0);
  PyEval_RestoreThread(state);
}

struct Surroundings {
  std::string locale = std::setlocale(LC_ALL, nullptr);
  std::string folder = std::filesystem::current_path().string();
  mode_t mask = umask(0);
  std::vector<struct sigaction> handlers{64};
  std::vector<std::string> variables;

  Surroundings() {
    umask(mask);
    for (int number = 1; number < 32; ++number) sigaction(number, nullptr, &handlers[static_cast<std::size_t>(number)]);
    for (char** variable = environ; *variable; ++variable) variables.emplace_back(*variable);
  }
};

/// Signals of a crash that the host leaves at their default are used for a traceback of Python.
bool is_left_to_us(std::size_t number, const struct sigaction& action) {
  const std::size_t crashes[] = {SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV};
  return action.sa_handler == SIG_DFL && std::count(std::begin(crashes), std::end(crashes), number) > 0;
}

void expect_surroundings_unchanged(const char* script_source) {
  std::signal(SIGUSR1, [](int) {});
  std::setlocale(LC_NUMERIC, "C.UTF-8");
  const Surroundings before;
  const Script script(script_source);
  const Surroundings after;
  EXPECT_EQ(after.locale, before.locale);
  EXPECT_EQ(after.folder, before.folder);
  EXPECT_EQ(after.mask, before.mask);
  for (std::size_t number = 1; number < 32; ++number) {
    if (is_left_to_us(number, before.handlers[number])) continue;
    EXPECT_EQ(after.handlers[number].sa_handler, before.handlers[number].sa_handler) << "signal " << number;
  }
  for (const std::string& variable : before.variables)
    EXPECT_NE(std::find(after.variables.begin(), after.variables.end(), variable), after.variables.end()) << variable;
}

TEST(Interpreter, LeavesTheSurroundingsAlone) { expect_surroundings_unchanged("import numpy"); }
TEST(Interpreter, LeavesTheSurroundingsAloneWithTorch) { expect_surroundings_unchanged("import torch"); }

TEST(Interpreter, DoesNotImportFromTheWorkingDirectory) {
  test::Folder folder;
  folder.write("only_here_.py", "");
  std::filesystem::current_path(folder.path());
  const Script script("import sys");
  EXPECT_FALSE(script.truth("'' in sys.path or '" + folder.path().string() + "' in sys.path"));
  std::filesystem::current_path("/");
}

TEST(Interpreter, PythonThreadsRunWhileTheProgramComputes) {
  static volatile long counter = 0;
  const Script script(R"(
import ctypes, threading
def count(address):
    cell = ctypes.c_long.from_address(address)
    def run():
        while True: cell.value += 1
    threading.Thread(target=run, daemon=True).start()
)");
  ASSERT_OK(script.call("count", {in(test::address(const_cast<const long*>(&counter)))}));
  const long before = counter;
  for (int i = 0; i < 60'000 && counter < before + 1000; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_GE(counter, before + 1000);
}

// What scripts call through ctypes: the library again.
const Script* called_back = nullptr;
std::string callback_error;

extern "C" int call_inner(int depth) {
  std::vector<double> x = {1.0 * depth}, y = {-1};
  const test::Outcome result = called_back->call("f", {in(x), in(depth)}, {out(y)});
  if (result.status != FPT_OK) callback_error = result.text;
  return static_cast<int>(y[0]);
}

std::string calls_back(const char* kind) {
  return std::string("import ctypes, threading, torch\ninner = ctypes.") + kind + "(ctypes.c_int, ctypes.c_int)(" +
         std::to_string(test::address(reinterpret_cast<void*>(call_inner))) + R"()
def f(x, depth):
    if depth == 0: return x + 100
    return x * 0 + inner(depth - 1) + depth
def from_thread(x):
    results = []
    thread = threading.Thread(target=lambda: results.append(inner(2)))
    thread.start()
    thread.join()
    return float(results[0])
)";
}

void expect_reentrance(const char* kind) {
  const Script script(calls_back(kind));
  called_back = &script;
  std::vector<double> x = {3}, y = {0};
  double value = 0;
  for (int i = 0; i < 4; ++i) {
    ASSERT_OK(script.call("f", {in(x), in(3)}, {out(y)})) << callback_error;
    EXPECT_EQ(y[0], 100 + 1 + 2 + 3);
    ASSERT_OK(script.call("from_thread", {in(x)}, {out(value)})) << callback_error;
    EXPECT_EQ(value, 100 + 1 + 2);
  }
}

TEST(Interpreter, MayBeEnteredAgainByItsScriptWithoutTheLock) { expect_reentrance("CFUNCTYPE"); }
TEST(Interpreter, MayBeEnteredAgainByItsScriptWithTheLock) { expect_reentrance("PYFUNCTYPE"); }

TEST(Interpreter, MayBeEnteredAgainInsideInferenceMode) {
  const Script script(calls_back("CFUNCTYPE") + "f = torch.inference_mode()(f)\n");
  called_back = &script;
  std::vector<double> x = {3}, y = {0};
  for (int i = 0; i < 4; ++i) {
    ASSERT_OK(script.call("f", {in(x), in(3)}, {out(y)})) << callback_error;
    EXPECT_EQ(y[0], 100 + 1 + 2 + 3);
  }
}

TEST(Interpreter, MayBeEnteredForTrainingAfterInferenceMode) {
  const Script script(calls_back("CFUNCTYPE") + R"(
w = torch.ones(1, dtype=torch.float64, requires_grad=True)
def f(x, depth): return (w * x).sum().reshape(1) if torch.is_inference_mode_enabled() else backward(x)
def backward(x):
    (w * x).sum().backward()
    return w.grad
@torch.inference_mode()
def g(x): return float(inner(5))
def h(x): return float(inner(5))
)");
  called_back = &script;
  double value = 0;
  for (int i = 0; i < 4; ++i) {
    ASSERT_OK(script.call("g", {in(1.0)}, {out(value)})) << callback_error;
    EXPECT_EQ(value, 5);
    ASSERT_OK(script.call("h", {in(1.0)}, {out(value)})) << callback_error;
    EXPECT_EQ(value, 5 * (i + 1));
  }
}

TEST(Interpreter, ServesAScriptThatTurnsInferenceModeOnForGood) {
  const Script script("import torch\nmode = torch.inference_mode()\nmode.__enter__()\ndef f(x): return 2 * x");
  std::vector<double> x = {3}, y = {0};
  for (int i = 0; i < 4; ++i) {
    ASSERT_OK(script.call("f", {in(x)}, {out(y)}));
    EXPECT_EQ(y[0], 6);
  }
}

TEST(StartFailure, WithoutPythonLeavesTheWayFree) {
  EXPECT_FAILS(init("/nowhere/python"), FPT_ERR_INTERPRETER, "\"/nowhere/python\", but there is no Python");
  EXPECT_EQ(Py_IsInitialized(), 0);
  EXPECT_OK(init());
}

TEST(StartFailure, IsToldByEveryFunctionThatNeedsPython) {
  const std::string right = build_python();
  {
    const test::Variable wrong("FTN_PYTORCH_PYTHON", "/nowhere/python");
    fpt_module module = 0;
    EXPECT_EQ(fpt_module_load(&module, 0, "x.py", 4, nullptr, 0, nullptr, 0), FPT_ERR_INTERPRETER);
    const char* text = nullptr;
    int64_t length = 0;
    EXPECT_EQ(fpt_diagnose(&text, &length), FPT_ERR_INTERPRETER);
    std::thread([] {
      const test::Variable also_wrong("FTN_PYTORCH_PYTHON", "/elsewhere/python");
      const char* other = nullptr;
      int64_t its_length = 0;
      EXPECT_EQ(fpt_diagnose(&other, &its_length), FPT_ERR_INTERPRETER);
    }).join();
    EXPECT_TRUE(test::contains(std::string(text, static_cast<std::size_t>(length)), "/nowhere/python"));
  }
  const Script script("def f(): return 1");
  EXPECT_EQ(script.number("f()"), 1);
}

TEST(StartFailure, WithAForeignPythonhomeIsOneSentenceAndTheNextStartWorks) {
  {
    const test::Variable wrong("PYTHONHOME", "/nowhere");
    EXPECT_FAILS(init(), FPT_ERR_PYTHONHOME, "unset PYTHONHOME");
  }
  EXPECT_OK(init());
}

TEST(StartFailure, WithAnotherVersionIsOneSentenceAndTheNextStartWorks) {
  test::Folder folder;
  folder.write("venv/pyvenv.cfg", "home = /usr/bin\nversion = 3.2.1\n");
  const std::string python = folder.write("venv/bin/python", "\177ELF", true).string();
  EXPECT_FAILS(init(python), FPT_ERR_VERSION, "is Python 3.2, but this library was built for");
  EXPECT_OK(init());
}

/// A virtual environment of the build's Python with nothing in it.
std::string empty_venv(const test::Folder& folder) {
  const std::string venv = (folder.path() / "empty").string();
  const std::string command = "'" + build_python() + "' -m venv --without-pip '" + venv + "'";
  EXPECT_EQ(std::system(command.c_str()), 0);
  return venv + "/bin/python";
}

TEST(EmptyEnvironment, IsEnoughForScriptsWithoutArrays) {
  test::Folder folder;
  ASSERT_OK(init(empty_venv(folder)));
  const Script script("def f(x, name): return x * len(name)");
  double value = 0;
  ASSERT_OK(script.call("f", {in(2.0), in("abc")}, {out(value)}));
  EXPECT_EQ(value, 6);
}

TEST(EmptyEnvironment, SaysThatNumPyIsMissing) {
  test::Folder folder;
  ASSERT_OK(init(empty_venv(folder)));
  const Script script("def f(x): pass\ndef g(): return 1");
  std::vector<double> x = {1};
  EXPECT_FAILS(script.call("f", {in(x)}), FPT_ERR_IMPORT, "No module named 'numpy'");
  EXPECT_EQ(script.number("g()"), 1);
}

TEST(EmptyEnvironment, SaysThatTorchIsMissing) {
  test::Folder folder;
  ASSERT_OK(init(empty_venv(folder)));
  const std::string file = folder.write("needs_torch.py", "import torch").string();
  fpt_module module = 0;
  EXPECT_FAILS(
      outcome(fpt_module_load(&module, 0, file.data(), static_cast<int64_t>(file.size()), nullptr, 0, nullptr, 0)),
      FPT_ERR_IMPORT, "No module named 'torch'");
  const Script script("def g(): return 1");
  EXPECT_EQ(script.number("g()"), 1);
}

TEST(TorchFreeProcess, StaysFreeOfTorch) {
  const Script script("import numpy, sys\ndef f(x): return x * 2");
  std::vector<double> x = {1, 2}, y(2);
  for (int i = 0; i < 4; ++i) ASSERT_OK(script.call("f", {in(x)}, {out(y)}));
  EXPECT_FALSE(script.truth("'torch' in sys.modules"));
}

TEST(Mode, IsSafeWhereTheEnvironmentSaysSo) {
  const test::Variable mode("FTN_PYTORCH_MODE", "safe");
  const Script script("import numpy\ndef change(x): x += 1");
  std::vector<double> x = {1, 2};
  for (int i = 0; i < 5; ++i) EXPECT_EQ(script.call("change", {in(x)}).status, FPT_ERR_INPUT_MODIFIED);
}

}  // namespace
}  // namespace fpt
