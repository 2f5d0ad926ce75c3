// SPDX-License-Identifier: MIT
/// Loading, functions, reload, save and restore; two modules at once; modules that go while they are in use.
#include <thread>

#include "script.hpp"
#include "script/script_runner.hpp"

namespace fpt {
namespace {

using test::in;
using test::named;
using test::option;
using test::out;
using test::outcome;
using test::Script;

struct LoadTest : testing::Test {
  test::Folder folder;
  fpt_module module = 0;
  ~LoadTest() override { fpt_module_free(module); }

  test::Outcome load(const std::string& file, std::vector<fpt_arg> options = {}, std::vector<fpt_arg> config = {}) {
    return outcome(fpt_module_load(&module, 0, file.data(), static_cast<int64_t>(file.size()), options.data(),
                                   static_cast<int32_t>(options.size()), config.data(),
                                   static_cast<int32_t>(config.size())));
  }
  test::Outcome load_source(const std::string& source, std::vector<fpt_arg> options = {},
                            std::vector<fpt_arg> config = {}) {
    return load(folder.write("script_in_folder.py", source).string(), std::move(options), std::move(config));
  }
};

TEST_F(LoadTest, TrailingBlanksOfTheFileNameDoNotCount) {
  EXPECT_OK(load(folder.write("padded.py", "x = 1").string() + "     "));
}

TEST_F(LoadTest, OfAFileThatIsNotThere) {
  EXPECT_FAILS(load((folder.path() / "missing.py").string()), FPT_ERR_FILE, "does not exist");
  EXPECT_FAILS(load("   "), FPT_ERR_FILE, "empty");
  EXPECT_FAILS(outcome(fpt_module_load(&module, 1, "  ", 2, nullptr, 0, nullptr, 0)), FPT_ERR_FILE, "empty");
  EXPECT_FAILS(load(folder.path().string()), FPT_ERR_FILE, "directory");
  EXPECT_EQ(module, 0);
}

TEST_F(LoadTest, OfAFileThatIsNoModel) {
  EXPECT_FAILS(load(folder.write("model.txt", "text").string()), FPT_ERR_FORMAT, "'.txt'");
}

TEST_F(LoadTest, OfAScriptThatIsNotPython) { EXPECT_FAILS(load_source("def f(:"), FPT_ERR_SYNTAX, "line 1"); }

TEST_F(LoadTest, OfAScriptThatImportsWhatIsNotThere) {
  EXPECT_FAILS(load_source("import no_such_module_"), FPT_ERR_IMPORT, "no_such_module_");
  EXPECT_FAILS(load_source("import no_such_module_"), FPT_ERR_IMPORT, "These folders were searched");
}

TEST_F(LoadTest, OfAScriptThatFails) {
  EXPECT_FAILS(load_source("x = 1\nraise ValueError('no data')"), FPT_ERR_SCRIPT, "ValueError: no data");
  EXPECT_FAILS(load_source("import sys\nsys.exit(2)"), FPT_ERR_SCRIPT, "SystemExit: 2");
}

TEST_F(LoadTest, ThatFailsLeavesTheModuleThatWasThere) {
  ASSERT_OK(load_source("def f(): return 1"));
  const fpt_module before = module;
  EXPECT_EQ(load_source("def f(:").status, FPT_ERR_SYNTAX);
  EXPECT_EQ(module, before);
  double value = 0;
  fpt_arg output = out(value);
  EXPECT_EQ(fpt_module_call(module, "f", 1, nullptr, 0, &output, 1, nullptr), FPT_OK);
}

TEST_F(LoadTest, ReplacesTheModuleThatTheHandleNamed) {
  ASSERT_OK(load_source("def f(): return 1"));
  const fpt_module before = module;
  ASSERT_OK(load_source("def f(): return 2"));
  EXPECT_FAILS(outcome(fpt_module_reload(before)), FPT_ERR_FREED, "has been freed");
  int32_t has = -1;
  EXPECT_EQ(fpt_module_has(module, "f", 1, &has), FPT_OK);
  EXPECT_EQ(has, 1);
}

/// Megabytes of this process that are resident.
double resident() {
  std::ifstream sizes("/proc/self/statm");
  double all = 0, pages = 0;
  sizes >> all >> pages;
  return pages * static_cast<double>(sysconf(_SC_PAGESIZE)) / (1 << 20);
}

TEST_F(LoadTest, MemoryOfAScriptIsGivenBackByReloadAndFreeAtOnce) {
  const std::string large = "data = bytearray(b'x') * (64 << 20)\n";
  ASSERT_OK(load_source("def f(): pass"));  // whatever the first load brings
  const double before = resident();
  ASSERT_OK(load_source(large + "def f(): return len(data)"));
  double length = 0;
  fpt_arg output = out(length);
  for (int i = 0; i < 4; ++i) {
    ASSERT_EQ(fpt_module_call(module, "f", 1, nullptr, 0, &output, 1, nullptr), FPT_OK);
    ASSERT_OK(outcome(fpt_module_reload(module)));
    EXPECT_LT(resident(), before + 80) << "reload " << i;
  }
  folder.write("script_in_folder.py", large + "def f(): return len(data)\nraise ValueError");
  EXPECT_EQ(fpt_module_reload(module), FPT_ERR_SCRIPT);
  EXPECT_LT(resident(), before + 80) << "a reload that failed";
  fpt_module_free(module);
  EXPECT_LT(resident(), before + 16) << "free";
  EXPECT_EQ(load_source(large + "def f(): return len(data)\nraise ValueError").status, FPT_ERR_SCRIPT);
  EXPECT_LT(resident(), before + 16) << "a load that failed";
}

TEST_F(LoadTest, HandsTheConfigurationToTheSetup) {
  std::vector<double> levels = {1, 2, 3};
  ASSERT_OK(
      load_source("def ftn_pytorch_setup(**config): got.update(config)\ngot = {}\n"
                  "def f(): return repr([got['lr'], got['name'], got['levels'].tolist()])",
                  {}, {named("lr", in(0.5)), named("name", in("adam")), named("levels", in(levels))}));
  levels = {0, 0, 0};
  std::string text(100, ' ');
  fpt_arg output = out(text);
  ASSERT_EQ(fpt_module_call(module, "f", 1, nullptr, 0, &output, 1, nullptr), FPT_OK);
  EXPECT_EQ(trimmed(text.data(), 100), "[0.5, 'adam', [1.0, 2.0, 3.0]]") << "the array is a copy";
}

TEST_F(LoadTest, RefusesOptionsThatAreUnknownOrNameless) {
  EXPECT_FAILS(load_source("", {option("colour", "red")}), FPT_ERR_ARGUMENT, "no option 'colour'");
  EXPECT_FAILS(load_source("", {option("layout", "sideways")}), FPT_ERR_ARGUMENT, "valid are reversed, same");
  EXPECT_FAILS(load_source("", {in("same")}), FPT_ERR_ARGUMENT, "option 1 needs a name");
  EXPECT_FAILS(load_source("def ftn_pytorch_setup(x): pass", {}, {named("x", test::array_arg<double>(nullptr, {1}))}),
               FPT_ERR_UNALLOCATED, "config 1 (\"x\")");
}

TEST_F(LoadTest, RefusesATensorInTheConfiguration) {
  std::vector<double> x = {1};
  const test::Tensor tensor(out(x));
  EXPECT_FAILS(load_source("def ftn_pytorch_setup(x): pass", {}, {named("x", tensor.arg())}), FPT_ERR_ARGUMENT,
               "pass the array itself");
}

TEST_F(LoadTest, OfAHandleOfAnotherKindIsRefused) {
  std::vector<double> x = {1};
  const test::Tensor tensor(out(x));
  EXPECT_FAILS(outcome(fpt_module_reload(tensor.handle)), FPT_ERR_ARGUMENT, "not that of a module");
  EXPECT_FAILS(outcome(fpt_module_reload(0)), FPT_ERR_NOT_LOADED, "call load first");
  fpt_module_free(tensor.handle);
  EXPECT_EQ(fpt_tensor_is_set(tensor.handle), 1);
}

TEST_F(LoadTest, OfTheSameFileTwiceGivesTwoInstances) {
  const std::string file =
      folder.write("twin.py", "n = 0\ndef f():\n    global n\n    n += 1\n    return n\n").string();
  fpt_module other = 0;
  ASSERT_OK(load(file));
  ASSERT_EQ(fpt_module_load(&other, 0, file.data(), static_cast<int64_t>(file.size()), nullptr, 0, nullptr, 0), FPT_OK);
  double value = 0;
  fpt_arg output = out(value);
  for (int i = 1; i <= 3; ++i) ASSERT_EQ(fpt_module_call(module, "f", 1, nullptr, 0, &output, 1, nullptr), FPT_OK);
  ASSERT_EQ(fpt_module_call(other, "f", 1, nullptr, 0, &output, 1, nullptr), FPT_OK);
  EXPECT_EQ(value, 1);
  fpt_module_free(other);
}

TEST(ModuleTest, TellsItsFunctionsAndItsBackend) {
  const Script script("def f(): pass\nvalue = 3\n");
  int32_t has = -1;
  ASSERT_EQ(fpt_module_has(script.handle(), "f  ", 3, &has), FPT_OK);
  EXPECT_EQ(has, 1);
  ASSERT_EQ(fpt_module_has(script.handle(), "value", 5, &has), FPT_OK);
  EXPECT_EQ(has, 0);
  const char* text = nullptr;
  int64_t length = 0;
  ASSERT_EQ(fpt_module_backend(script.handle(), &text, &length), FPT_OK);
  EXPECT_EQ(std::string(text, static_cast<std::size_t>(length)), "script");
}

TEST(ModuleTest, IsReadAgainByReload) {
  const Script script("def f(x): return 1");
  double value = 0;
  for (int i = 0; i < 3; ++i) ASSERT_OK(script.call("f", {in(1.0)}, {out(value)}));
  std::ofstream(script.path()) << "def f(x): return 2 * x\ndef evaluate_(expression): return eval(expression)\n";
  ASSERT_EQ(fpt_module_reload(script.handle()), FPT_OK);
  ASSERT_OK(script.call("f", {in(4.0)}, {out(value)}));
  EXPECT_EQ(value, 8);
}

TEST(ModuleTest, StaysWhenAReloadFails) {
  const Script script("def f(): return 1");
  std::ofstream(script.path()) << "def f(: return 2\n";
  EXPECT_FAILS(outcome(fpt_module_reload(script.handle())), FPT_ERR_SYNTAX, "");
  double value = 0;
  ASSERT_OK(script.call("f", {}, {out(value)}));
  EXPECT_EQ(value, 1);
}

TEST(ModuleTest, SavesAndRestoresThroughItsHooks) {
  test::Folder folder;
  const std::string file = (folder.path() / "state").string();
  const Script script(R"(
state = 3
def ftn_pytorch_save(name): open(name, "w").write(str(state))
def ftn_pytorch_restore(name):
    global state
    state = int(open(name).read())
def change():
    global state
    state = 0
)");
  ASSERT_OK(outcome(fpt_module_save(script.handle(), file.data(), static_cast<int64_t>(file.size()))));
  ASSERT_OK(script.call("change"));
  const auto length = static_cast<int64_t>(file.size());
  ASSERT_OK(outcome(fpt_module_restore(script.handle(), file.data(), length, 0, -1, nullptr)));
  EXPECT_EQ(script.number("state"), 3);
}

TEST(ModuleTest, KeepsItsStateWithoutHooks) {
  test::Folder folder;
  const std::string steps = (folder.path() / "steps").string();
  const auto length = static_cast<int64_t>(steps.size());
  const Script script(R"(
state = 3
def change():
    global state
    state = 0
)");
  EXPECT_FAILS(outcome(fpt_module_restore(script.handle(), steps.data(), length, 0, -1, nullptr)),
               FPT_ERR_NO_CHECKPOINT, "does not exist");
  ASSERT_OK(outcome(fpt_module_checkpoint(script.handle(), steps.data(), length, 3, 12)));
  ASSERT_OK(script.call("change"));
  int64_t found = 0;
  ASSERT_OK(outcome(fpt_module_restore(script.handle(), steps.data(), length, 1, 12, &found)));
  EXPECT_EQ(found, 12);
  EXPECT_EQ(script.number("state"), 3);
  found = 5;
  EXPECT_FAILS(outcome(fpt_module_restore(script.handle(), steps.data(), length, 0, 7, &found)), FPT_ERR_NO_CHECKPOINT,
               "of step 7, but of 12");
  EXPECT_EQ(found, 5);
  const Script other("state = []");
  EXPECT_FAILS(outcome(fpt_module_checkpoint(other.handle(), steps.data(), length, 3, -1)), FPT_ERR_LOCKED, "is being");
  EXPECT_FAILS(outcome(fpt_module_checkpoint(script.handle(), steps.data(), length, 0, -1)), FPT_ERR_ARGUMENT, "keep");
  EXPECT_FAILS(outcome(fpt_module_checkpoint(0, steps.data(), length, 3, -1)), FPT_ERR_NOT_LOADED, "");
}

TEST(ModuleTest, WithoutHooksAndStateCannotBeSaved) {
  const Script script("");
  EXPECT_FAILS(outcome(fpt_module_save(script.handle(), "x", 1)), FPT_ERR_HOOK, "ftn_pytorch_save");
  EXPECT_FAILS(outcome(fpt_module_restore(script.handle(), "x", 1, 0, -1, nullptr)), FPT_ERR_HOOK,
               "ftn_pytorch_restore");
}

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
  const Script script(callback("end", test_late_finalizer_reloads) + callback("reload", test_module_reload) + R"(
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
  used_module = script.handle();
  std::vector<double> x = {3}, y = {0};
  finalizers = 0;
  for (int i = 1; i <= 5; ++i) {
    ASSERT_OK(script.call("f", {in(x)}, {out(y)}));
    EXPECT_EQ(y[0], 6);
    ASSERT_OK(script.call("f", {in(x)}));
  }
  EXPECT_GT(finalizers, 20) << "of the function that is replaced, of the argument and of the result";
}

TEST(ModuleTest, MayBeReloadedWhileAFunctionIsLookedUp) {
  const Script script(callback("reload", test_module_reload) + R"(
import inspect, sys
sys.ftn_pytorch_loads = getattr(sys, "ftn_pytorch_loads", 0) + 1
class Function:
    load = sys.ftn_pytorch_loads
    @property
    def __signature__(self):
        if self.load == 1: assert reload() == 0
        return inspect.Signature()
    def __call__(self): return float(self.load)
f = Function()
)");
  used_module = script.handle();
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
