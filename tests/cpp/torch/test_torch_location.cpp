// SPDX-License-Identifier: MIT
#include <patchlevel.h>

#include <filesystem>

#include "support.hpp"
#include "torch/torch_location.hpp"

namespace fs = std::filesystem;

namespace fpt::test {
namespace {

const std::string python = concat("python", PY_MAJOR_VERSION, ".", PY_MINOR_VERSION);
const std::string version = concat("version = ", PY_VERSION, "\n");
const std::string version_file = "# of a build\n__version__ = '9.8.7+cpu'\ndebug = False\n";

class TorchLocationTest : public testing::Test {
 protected:
  std::string add(const std::string& packages) {
    folder.write(packages + "/torch/version.py", version_file);
    return (folder.path() / packages / "torch").string();
  }

  Folder folder;
  Variable no_path{"PYTHONPATH", nullptr};
  Variable home{"HOME", folder.path().string()};
};

TEST_F(TorchLocationTest, FolderAndVersionOfAPackage) {
  const std::string place = add("packages");
  const TorchLocation torch = torch_in(place);
  EXPECT_EQ(torch.folder, place);
  EXPECT_EQ(torch.version, "9.8.7+cpu");
  EXPECT_EQ(text_of(torch), "torch 9.8.7+cpu in " + place);
  EXPECT_TRUE(torch_in((folder.path() / "empty").string()).folder.empty());
}

struct WheelRow {
  const char *version, *name, *line, *minor;
};

constexpr WheelRow wheel_rows[] = {
#include "torch/torch_wheels.inc"
};

TEST_F(TorchLocationTest, MinorVersionOfAWheelOfPyTorch) {
  for (const WheelRow& row : wheel_rows) {
    const Folder packages;
    packages.write("torch/version.py", concat("__version__ = '", row.version, "'\n"));
    if (*row.line)
      packages.write(concat("torch-", row.name, ".dist-info/WHEEL"), concat("Wheel-Version: 1.0\n", row.line));
    EXPECT_EQ(torch_in((packages.path() / "torch").string()).minor, row.minor) << row.version << ' ' << row.line;
  }
}

TEST_F(TorchLocationTest, PackageThatIsALinkIntoAStore) {
  const fs::path store = add("store"), packages = folder.path() / "packages";
  folder.write("packages/torch-9.8.7+cpu.dist-info/WHEEL", "Tag: cp311-cp311-manylinux_2_28_x86_64\n");
  fs::create_directory_symlink(store, packages / "torch");
  EXPECT_EQ(torch_in((packages / "torch").string()).minor, "9.8");
  EXPECT_EQ(torch_in(store.string()).minor, "");
  fs::rename(packages / "torch-9.8.7+cpu.dist-info", store.parent_path() / "torch-9.8.7+cpu.dist-info");
  EXPECT_EQ(torch_in((packages / "torch").string()).minor, "9.8");
}

TEST_F(TorchLocationTest, VirtualEnvironmentHasItsOwn) {
  folder.write("env/pyvenv.cfg", "home = /nowhere/bin\n" + version);
  const std::string executable = folder.write("env/bin/python", "").string();
  EXPECT_TRUE(torch_of_python(executable).folder.empty());
  const std::string place = add("env/lib/" + python + "/site-packages");
  EXPECT_EQ(torch_of_python(executable).folder, place);
}

TEST_F(TorchLocationTest, SystemPackagesAreSeenWhereTheEnvironmentSaysSo) {
  const std::string base = (folder.path() / "base").string(), executable = folder.write("env/bin/python", "").string();
  const std::string place = add("base/lib/" + python + "/site-packages");
  folder.write("env/pyvenv.cfg", "home = " + base + "/bin\ninclude-system-site-packages = false\n" + version);
  EXPECT_TRUE(torch_of_python(executable).folder.empty());
  folder.write("env/pyvenv.cfg", "home = " + base + "/bin\ninclude-system-site-packages = true\n" + version);
  EXPECT_EQ(torch_of_python(executable).folder, place);
}

TEST_F(TorchLocationTest, PythonpathComesFirst) {
  const std::string place = add("first");
  add("lib/" + python + "/site-packages");
  const Variable path("PYTHONPATH", ":" + (folder.path() / "first").string());
  EXPECT_EQ(torch_of_python(folder.write("bin/python", "").string()).folder, place);
}

TEST_F(TorchLocationTest, SameFolderAndSameVersionAreTheSame) {
  EXPECT_TRUE(same_torch({"/a", "1"}, {"/a", "1"}));
  EXPECT_FALSE(same_torch({"/a", "1"}, {"/b", "1"}));
  EXPECT_FALSE(same_torch({"/a", "1"}, {"/a", "2"}));
}

TEST_F(TorchLocationTest, NoTorchIsLoadedHere) { EXPECT_TRUE(loaded_torch().folder.empty()); }

}  // namespace
}  // namespace fpt::test
