// SPDX-License-Identifier: MIT
/// Loading, functions, reload, save and restore; two modules at once.
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
  const std::string large = "import numpy\ndata = numpy.full(64 << 20, 120, 'u1')\n";
  ASSERT_OK(load_source("import numpy\ndef f(): pass"));  // whatever the first load brings
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
  EXPECT_FAILS(outcome(fpt_module_reload(0)), FPT_ERR_NOT_LOADED, "call load, or create, first");
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

TEST(ModuleTest, AFunctionThatTheScriptReplacesIsCalledFromThenOn) {
  Script script(
      "def ftn_pytorch_forward(x): return 1.0\n"
      "def ftn_pytorch_train(x, y): return False, 1.0\n"
      "def f(): return 1.0\n"
      "def replace(value):\n"
      "  global ftn_pytorch_forward, ftn_pytorch_train, f\n"
      "  ftn_pytorch_forward = lambda *x: value\n"
      "  ftn_pytorch_train = lambda x, y: (True, value)\n"
      "  f = lambda: value\n");
  double x = 0, forward = 0, called = 0;
  for (const double expected : {1.0, 2.0, 2.0, 3.0}) {
    if (expected > 1) {
      ASSERT_OK(script.call("replace", {in(expected)}));
    }
    for (int call = 0; call < 4; ++call) {
      ASSERT_OK(script.forward({in(x)}, {out(forward)}));
      ASSERT_OK(script.call("f", {}, {out(called)}));
      ASSERT_OK(script.train({in(x)}, {in(x)}));
      EXPECT_EQ(forward, expected);
      EXPECT_EQ(called, expected);
      EXPECT_EQ(script.loss, expected);
    }
  }
  EXPECT_OK(script.call("evaluate_", {in("globals().pop('f')")}));
  EXPECT_FAILS(script.call("f"), FPT_ERR_HOOK, "no function f");
}

TEST(ModuleTest, AFunctionMayReplaceItselfWhileItRuns) {
  Script script(
      "class Once:\n"
      "  def __call__(self):\n"
      "    global f\n"
      "    f = lambda: 2.0\n"
      "    return evaluate_('call_f()') + len(vars(self)) - 1.0\n"
      "f = Once()\n"
      "def call_f(): return f()\n");
  double value = 0;
  for (const double expected : {1.0, 2.0, 2.0}) {
    ASSERT_OK(script.call("f", {}, {out(value)}));
    EXPECT_EQ(value, expected);
  }
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

TEST_F(LoadTest, AScriptWithoutHooksAndStateHasCheckpointsWithItsRandomStates) {
  ASSERT_OK(load_source("import random\ndef f(): return random.random()"));
  double first = 0, again = 1;
  fpt_arg output = out(first), other = out(again);
  const std::string file = (folder.path() / "x.ckpt").string();
  const auto size = static_cast<int64_t>(file.size());
  ASSERT_OK(outcome(fpt_module_save(module, file.data(), size)));
  ASSERT_EQ(fpt_module_call(module, "f", 1, nullptr, 0, &output, 1, nullptr), FPT_OK);
  ASSERT_OK(outcome(fpt_module_restore(module, file.data(), size, 0, -1, nullptr)));
  ASSERT_EQ(fpt_module_call(module, "f", 1, nullptr, 0, &other, 1, nullptr), FPT_OK);
  EXPECT_EQ(first, again);
}

}  // namespace
}  // namespace fpt
