// SPDX-License-Identifier: MIT
/// Who runs a file, as far as one process can tell: this one has Python, and no plug-in beside it. The choice between
/// the paths is in tests/direct/test_choice.py.
#include "calls/options.hpp"
#include "direct/direct_plugin.hpp"
#include "opening.hpp"
#include "script.hpp"

namespace fpt {
namespace {

struct BackendTest : testing::Test {
  const test::Folder folder;
  const std::string script = folder.write("script.py", "def f(): pass\n").string();

  std::unique_ptr<Runner> open(int32_t kind, const std::string& file, Backend backend = Backend::automatic) {
    constexpr const char* names[] = {"auto", "python", "direct"};
    fpt_arg option = test::named("backend", test::in(names[static_cast<int>(backend)]));
    return open_runner(kind, file, {&option, 1}, {});
  }
  test::Outcome refused(int32_t kind, const std::string& file, Backend backend = Backend::automatic) {
    return test::outcome_of([&] { open(kind, file, backend); });
  }
};

TEST_F(BackendTest, ScriptsAreRunByPythonWhateverWasExpected) {
  for (const int32_t kind : {0, 1}) EXPECT_EQ(open(kind, script)->backend(), "script");
  EXPECT_EQ(open(1, script, Backend::python)->backend(), "script");
}

TEST_F(BackendTest, ScriptsAreNotRunDirectly) {
  for (const int32_t kind : {0, 1})
    EXPECT_FAILS(refused(kind, script, Backend::direct), FPT_ERR_FORMAT,
                 "script.py cannot be loaded with backend=\"direct\"");
}

TEST_F(BackendTest, FilesThatAreNotThereAreToldByEveryBackend) {
  const std::string missing = (folder.path() / "missing.pt").string(), place = folder.path().string();
  for (const Backend backend : {Backend::automatic, Backend::python, Backend::direct}) {
    EXPECT_FAILS(refused(1, "", backend), FPT_ERR_FILE, "empty");
    EXPECT_FAILS(refused(1, missing, backend), FPT_ERR_FILE, "does not exist");
    EXPECT_EQ(refused(1, place, backend).status, FPT_ERR_FILE);
  }
}

TEST_F(BackendTest, RelativeNamesAreThoseOfTheWorkingFolder) {
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  const std::string backend = open(1, "script.py")->backend();
  const test::Outcome direct = refused(1, "script.py", Backend::direct);
  std::filesystem::current_path(before);
  EXPECT_EQ(backend, "script");
  EXPECT_FAILS(direct, FPT_ERR_FORMAT, script) << "the whole name";
}

TEST_F(BackendTest, WithoutThePluginSavedModelsAreRunByPythonAfterOneWarning) {
  const std::string model = (folder.path() / "net.pt").string();
  const test::Script writer(
      "import torch\ndef write(f): torch.jit.trace(torch.nn.Identity(), torch.ones(1)).save(f)\n");
  ASSERT_OK(writer.call("write", {test::in(model.c_str())}));
  const bool is_built = !direct_torch().folder.empty();
  const test::CollectedWarnings warnings;
  for (int i = 0; i < 2; ++i) EXPECT_EQ(open(1, model)->backend(), "torchscript");
  EXPECT_EQ(warnings.count(), is_built ? 1u : 0u) << warnings.all();
  EXPECT_EQ(test::contains(warnings.all(), "is missing; saved models run through Python instead"), is_built)
      << warnings.all();
  EXPECT_FAILS(refused(1, model, Backend::direct), is_built ? FPT_ERR_VERSION : FPT_ERR_IMPORT, direct_obstacle());
  EXPECT_EQ(open(1, model, Backend::python)->backend(), "torchscript");
}

}  // namespace
}  // namespace fpt
