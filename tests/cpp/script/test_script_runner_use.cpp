// SPDX-License-Identifier: MIT
/// Modules that are reloaded or freed while they are in use.
#include <optional>
#include <thread>

#include "script.hpp"
#include "script/script_runner.hpp"

namespace fpt {
namespace {

using test::in;
using test::out;
using test::outcome;
using test::Script;

// A script may call back into the library through ctypes; these stand for what a program would do there.
fpt_module used_module = 0;

extern "C" __attribute__((visibility("default"))) void test_module_free() { fpt_module_free(used_module); }
extern "C" __attribute__((visibility("default"))) int test_module_reload() { return fpt_module_reload(used_module); }
extern "C" __attribute__((visibility("default"))) void test_module_free_elsewhere() {
  std::thread(test_module_free).join();
}
extern "C" __attribute__((visibility("default"))) int test_module_reload_elsewhere() {
  int status = -1;
  std::thread([&] { status = test_module_reload(); }).join();
  return status;
}

std::string callback(const char* name, void (*function)()) {
  return "import ctypes\n" + std::string(name) + " = ctypes.CFUNCTYPE(ctypes.c_int)(" +
         std::to_string(test::address(reinterpret_cast<void*>(function))) + ")\n";
}

std::string callback(const char* name, int (*function)()) {
  return callback(name, reinterpret_cast<void (*)()>(function));
}

TEST(ModuleTest, MayBeFreedDuringACallByItsOwnScriptOrAnotherThread) {
  for (const auto free : {test_module_free, test_module_free_elsewhere}) {
    const Script script(callback("free", free) + "def f():\n    free()\n    return 5\n");
    used_module = script.handle();
    double value = 0;
    EXPECT_OK(script.call("f", {}, {out(value)}));
    EXPECT_EQ(value, 5);
    EXPECT_FAILS(script.call("f"), FPT_ERR_FREED, "has been freed");
  }
}

TEST(ModuleTest, MayBeReloadedDuringACallByItsOwnScriptOrAnotherThread) {
  for (const auto reload : {test_module_reload, test_module_reload_elsewhere}) {
    Script script(callback("reload", reload) +
                  "def f(x):\n    assert reload() == 0\n    return 2 * x\n"
                  "def ftn_pytorch_train(x, target): return reload() == 0, float(x.sum() + target.sum())\n");
    used_module = script.handle();
    std::vector<double> x = {3}, y = {0};
    for (int i = 0; i < 5; ++i) {
      ASSERT_OK(script.call("f", {in(x)}, {out(y)}));
      EXPECT_EQ(y[0], 6);
      ASSERT_OK(script.train({in(x)}, {in(x)}));
      EXPECT_EQ(script.completed, 1);
      EXPECT_EQ(script.loss, 6);
    }
  }
}

TEST(ModuleTest, ACallGoesOnWithTheFunctionThatAReloadReplaces) {
  const Script script(callback("reload", test_module_reload) + R"(
import gc, os
def f(depth):
    if depth == 0:
        open(__file__, "a").write("\ndef f(depth): return -1\n")
        assert reload() == 0
        gc.collect()
        return 1
    return 1 + f(depth - 1)
)");
  used_module = script.handle();
  int32_t value = 0;
  ASSERT_OK(script.call("f", {in(3)}, {out(value)}));
  EXPECT_EQ(value, 4);
  ASSERT_OK(script.call("f", {in(3)}, {out(value)}));
  EXPECT_EQ(value, -1);
}

TEST(ModuleTest, FreeingAnObjectThatTookNoMemoryCollectsNoGarbage) {
  const Script script(R"(
import gc
collections = 0
def count(phase, info):
    global collections
    collections += phase == "start"
def begin():
    gc.disable()
    gc.callbacks.append(count)
def end():
    gc.callbacks.remove(count)
    gc.enable()
)");
  std::unique_ptr<Runner> made = ScriptRunner::torch_functions(false);
  ASSERT_OK(script.call("begin"));
  made.reset();
  ASSERT_OK(script.call("end"));
  EXPECT_EQ(script.number("collections"), 0);
}

int finalizers = 0;  // that ran

extern "C" __attribute__((visibility("default"))) void test_finalizer_reloads() {
  ++finalizers;
  EXPECT_OK(outcome(fpt_module_reload(used_module)));
}
/// The same for objects in cycles, some of which die after their module.
extern "C" __attribute__((visibility("default"))) void test_late_finalizer_reloads() {
  if (fpt_module_reload(used_module) == FPT_OK) ++finalizers;
}
extern "C" __attribute__((visibility("default"))) void test_finalizer_frees() {
  ++finalizers;
  fpt_module_free(used_module);
  EXPECT_FAILS(outcome(fpt_module_reload(used_module)), FPT_ERR_FREED, "has been freed");
}

/// A function that the library alone holds after its first call, so that it dies when the library lets go of it.
const char* const mortal = R"(
class Mortal:
    called = False
    def __call__(self, x):
        self.called = True
        globals().pop("f", None)
        return 2 * x
    def __del__(self):
        if self.called: end()
f = Mortal()
)";

TEST(ModuleTest, MayBeReloadedByAFinalizerOfWhatAReloadReplaces) {
  const Script script(callback("end", test_finalizer_reloads) + mortal);
  used_module = script.handle();
  std::vector<double> x = {3}, y = {0};
  finalizers = 0;
  for (int i = 1; i <= 3; ++i) {
    ASSERT_OK(script.call("f", {in(x)}, {out(y)}));
    EXPECT_EQ(y[0], 6);
    ASSERT_OK(outcome(fpt_module_reload(script.handle())));
    EXPECT_EQ(finalizers, i);
  }
}

TEST(ModuleTest, MayBeReloadedByAFinalizerAtTheEndOfACall) {
  std::optional<Script> script(
      std::in_place, callback("end", test_late_finalizer_reloads) + callback("reload", test_module_reload) + R"(
import torch
class Mortal:
    def __del__(self): end()
class Function(Mortal):
    def __call__(self, x):
        assert reload() == 0
        x.mark = Mortal()
        result = 2 * x
        result.mark = Mortal()
        return result
f = Function()
)");
  used_module = script->handle();
  std::vector<double> x = {3}, y = {0};
  finalizers = 0;
  for (int i = 1; i <= 5; ++i) {
    ASSERT_OK(script->call("f", {in(x)}, {out(y)}));
    EXPECT_EQ(y[0], 6);
    ASSERT_OK(script->call("f", {in(x)}));
  }
  EXPECT_GT(finalizers, 20) << "of the function that is replaced, of the argument and of the result";
  script.reset();
  const Script collector("import gc\ngc.collect()\n");  // or those in cycles reload the module of a later test
}

TEST(ModuleTest, MayBeReloadedWhileAFunctionIsLookedUp) {
  const Script script(callback("reload", test_module_reload) + R"(
import inspect, sys
armed = False
def arm():
    global armed
    armed = True
sys.ftn_pytorch_loads = getattr(sys, "ftn_pytorch_loads", 0) + 1
class Function:
    load = sys.ftn_pytorch_loads
    @property
    def __signature__(self):
        if armed: assert reload() == 0
        return inspect.Signature()
    def __call__(self): return float(self.load)
f = Function()
)");
  used_module = script.handle();
  ASSERT_OK(script.call("arm"));
  for (int i = 0; i < 3; ++i) {
    double load = 0;
    ASSERT_OK(script.call("f", {}, {out(load)}));
    EXPECT_EQ(load, 2) << "the function of the module that was replaced";
  }
}

TEST(ModuleTest, IsFreedOnceWhereAFinalizerOfItFreesItToo) {
  const Script script(callback("end", test_finalizer_frees) + mortal);
  used_module = script.handle();
  finalizers = 0;
  ASSERT_OK(script.call("f", {in(1.0)}));
  fpt_module_free(script.handle());
  EXPECT_EQ(finalizers, 1);
}

}  // namespace
}  // namespace fpt
