// SPDX-License-Identifier: MIT
#include <patchlevel.h>
#include <sys/utsname.h>

#include <fstream>

#include "base/paths.hpp"
#include "python/environment.hpp"
#include "python/own_parts.hpp"
#include "support.hpp"

namespace fpt {
namespace {

namespace fs = std::filesystem;

const std::string ours = concat(PY_MAJOR_VERSION, ".", PY_MINOR_VERSION);
const std::string other = concat(PY_MAJOR_VERSION, ".", PY_MINOR_VERSION + 1);

/// A folder with made-up Python installations, and no variable that chooses one.
struct EnvironmentTest : testing::Test {
  test::Folder folder;
  test::Variable python{"FTN_PYTORCH_PYTHON", nullptr}, virtual_env{"VIRTUAL_ENV", nullptr},
      conda{"CONDA_PREFIX", nullptr}, home{"PYTHONHOME", nullptr};

  /// bin/python3.x, bin/python and the standard library of `version`; returns bin/python.
  fs::path install(const std::string& name, const std::string& version = ours) {
    folder.write(name + "/lib/python" + version + "/os.py", "");
    folder.write(name + "/bin/python" + version, "\177ELF", true);
    fs::create_symlink("python" + version, folder.path() / name / "bin" / "python");
    return folder.path() / name / "bin" / "python";
  }

  /// A virtual environment of the installation `base`.
  fs::path make_venv(const std::string& name, const std::string& base, const std::string& version = ours + ".1") {
    const fs::path bin = folder.path() / name / "bin";
    folder.write(name + "/pyvenv.cfg",
                 "home = " + (folder.path() / base / "bin").string() + "\nversion = " + version + "\n");
    fs::create_directories(bin);
    fs::create_symlink(folder.path() / base / "bin" / "python", bin / "python");
    return bin / "python";
  }

  /// torch, which the build's Python may have: an environment without it is not taken then.
  void add_torch(const std::string& name) {
    folder.write(name + "/lib/python" + ours + "/site-packages/torch/version.py", "__version__ = '2.0'\n");
  }

  std::string library(const std::string& name) { return (folder.path() / name / "lib" / "libpython.so").string(); }

  test::Outcome choose(const std::string& python = {}, const std::string& libpython = {}) {
    const LoadedPython loaded{libpython, libpython.empty() ? std::string() : ours};
    return test::outcome_of([&] { choice = choose_python(python, loaded); });
  }

  PythonChoice choice;
  const std::string build = choose_python({}, {}).executable;  // no variable names one: that of the build
};

TEST_F(EnvironmentTest, TheArgumentComesFirst) {
  const fs::path given = install("given");
  const test::Variable variable("FTN_PYTORCH_PYTHON", install("variable").string());
  ASSERT_OK(choose(given.string()));
  EXPECT_EQ(choice.executable, given);
  EXPECT_EQ(choice.reason, "argument of ftn_pytorch_init");
}

TEST_F(EnvironmentTest, ThenTheVariableOfThisLibrary) {
  const fs::path named = install("variable");
  const test::Variable variable("FTN_PYTORCH_PYTHON", named.string());
  install("venv");
  const test::Variable active("VIRTUAL_ENV", (folder.path() / "venv").string());
  ASSERT_OK(choose());
  EXPECT_EQ(choice.executable, named);
  EXPECT_EQ(choice.reason, "FTN_PYTORCH_PYTHON");
}

TEST_F(EnvironmentTest, ThenTheActiveVirtualEnvironment) {
  install("base");
  const fs::path venv = make_venv("venv", "base");
  add_torch("venv");
  install("conda");
  const test::Variable active("VIRTUAL_ENV", (folder.path() / "venv").string());
  const test::Variable other_one("CONDA_PREFIX", (folder.path() / "conda").string());
  ASSERT_OK(choose());
  EXPECT_EQ(choice.executable, venv) << "the link itself: it decides on site-packages";
  EXPECT_EQ(choice.reason, "VIRTUAL_ENV");
}

TEST_F(EnvironmentTest, ThenTheActiveCondaEnvironment) {
  const fs::path conda_python = install("conda");
  add_torch("conda");
  const test::Variable active("CONDA_PREFIX", (folder.path() / "conda").string());
  ASSERT_OK(choose());
  EXPECT_EQ(choice.executable, conda_python);
  EXPECT_EQ(choice.reason, "CONDA_PREFIX");
}

TEST_F(EnvironmentTest, ThenThePythonOfTheBuild) {
  ASSERT_OK(choose());
  EXPECT_EQ(choice.reason, "the Python this library was built with");
}

TEST_F(EnvironmentTest, EmptyVariablesAreNotSet) {
  const test::Variable a("FTN_PYTORCH_PYTHON", ""), b("VIRTUAL_ENV", ""), c("CONDA_PREFIX", ""), d("PYTHONHOME", "");
  ASSERT_OK(choose());
  EXPECT_EQ(choice.reason, "the Python this library was built with");
}

TEST_F(EnvironmentTest, TheVariableOfThisLibraryBindsEvenIfItDoesNotFit) {
  install("venv");
  const test::Variable active("VIRTUAL_ENV", (folder.path() / "venv").string());
  const test::Variable variable("FTN_PYTORCH_PYTHON", "/nowhere/python");
  EXPECT_FAILS(choose(), FPT_ERR_INTERPRETER, "FTN_PYTORCH_PYTHON is \"/nowhere/python\"");
}

TEST_F(EnvironmentTest, AMissingFileIsNoPython) {
  EXPECT_FAILS(choose((folder.path() / "python").string()), FPT_ERR_INTERPRETER,
               "there is no Python that can be executed: give the path of a Python " + ours + " executable");
}

TEST_F(EnvironmentTest, AFolderOrAFileThatCannotBeExecutedIsNoPython) {
  EXPECT_FAILS(choose(folder.path().string()), FPT_ERR_INTERPRETER, "no Python that can be executed");
  EXPECT_FAILS(choose(folder.write("python", "\177ELF").string()), FPT_ERR_INTERPRETER,
               "no Python that can be executed");
}

TEST_F(EnvironmentTest, AShimIsNotPythonItself) {
  const fs::path shim = folder.write("shims/python", "#!/bin/sh\nexec pyenv exec python\n", true);
  EXPECT_FAILS(choose(shim.string()), FPT_ERR_INTERPRETER, "is a script (a pyenv shim, perhaps)");
  EXPECT_FAILS(choose(shim.string()), FPT_ERR_INTERPRETER, "sys.executable");
}

TEST_F(EnvironmentTest, AnActiveEnvironmentThatIsGoneGivesWayToThePythonOfTheBuild) {
  for (const char* name : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    const std::string gone = (folder.path() / "gone").string();
    const test::Variable active(name, gone);
    ASSERT_OK(choose());
    EXPECT_EQ(choice.executable, build);
    EXPECT_EQ(choice.reason, "the Python this library was built with");
    EXPECT_NE(choice.warning.find(concat(name, " is \"", gone, "\"")), std::string::npos) << choice.warning;
    EXPECT_NE(choice.warning.find("runs " + build), std::string::npos) << choice.warning;
  }
}

TEST_F(EnvironmentTest, AnActiveEnvironmentOfAnotherPythonGivesWayToThePythonOfTheBuild) {
  install("base");
  make_venv("venv", "base", other + ".2");
  install("conda");  // the right version, but not the Python library of this process
  {
    const test::Variable active("VIRTUAL_ENV", (folder.path() / "venv").string());
    ASSERT_OK(choose());
    EXPECT_NE(choice.warning.find("is Python " + other), std::string::npos) << choice.warning;
  }
  const test::Variable active("CONDA_PREFIX", (folder.path() / "conda").string());
  const fs::path prefix = resolved(build).parent_path().parent_path();
  ASSERT_OK(choose({}, (prefix / "lib/libpython.so").string()));
  EXPECT_EQ(choice.executable, build);
  EXPECT_NE(choice.warning.find("uses the Python library"), std::string::npos) << choice.warning;
}

TEST_F(EnvironmentTest, AnActiveEnvironmentWithoutTheTorchOfTheBuildGivesWay) {
  install("base");
  const fs::path venv = make_venv("venv", "base");
  const test::Variable active("VIRTUAL_ENV", (folder.path() / "venv").string());
  test::Folder packages;
  packages.write("torch/version.py", "");
  {
    // the torch of the build, wherever that is
    const test::Variable path("PYTHONPATH", packages.path().string());
    ASSERT_OK(choose());
    EXPECT_EQ(choice.executable, venv) << "found through PYTHONPATH by both";
    EXPECT_EQ(choice.warning, "");
  }
  bool build_has_torch = false;
  for (const fs::path folder : package_folders(build))
    build_has_torch = build_has_torch || fs::exists(folder / "torch" / "version.py");
  ASSERT_OK(choose());
  EXPECT_EQ(choice.executable, build_has_torch ? build : venv.string());
  EXPECT_EQ(choice.warning.find("which has no torch") != std::string::npos, build_has_torch) << choice.warning;
  folder.write("venv/lib/python" + ours + "/site-packages/own.pth", "# comment\n" + packages.path().string() + "\n");
  ASSERT_OK(choose());
  EXPECT_EQ(choice.executable, venv) << "found through a path file";
}

TEST_F(EnvironmentTest, AVirtualEnvironmentOfAnotherVersionIsRefused) {
  install("base");
  const fs::path venv = make_venv("venv", "base", other + ".2");
  EXPECT_FAILS(choose(venv.string()), FPT_ERR_VERSION,
               "is Python " + other + ", but this library was built for Python " + ours);
}

TEST_F(EnvironmentTest, AVersionIsComparedAsAWhole) {
  // 3.1 is not the beginning of 3.11
  install("base");
  const fs::path venv = make_venv("venv", "base", ours + "9.1");
  EXPECT_EQ(choose(venv.string()).status, FPT_ERR_VERSION);
}

TEST_F(EnvironmentTest, AnInstallationOfAnotherVersionIsRefused) {
  EXPECT_FAILS(choose(install("base", other).string()), FPT_ERR_VERSION,
               "is Python " + other + ", but this library was built for Python " + ours);
}

TEST_F(EnvironmentTest, AFreeThreadedPythonIsRefused) {
  install("base");
  const std::string python = folder.write("base/bin/python" + ours + "t", "\177ELF", true).string();
  EXPECT_FAILS(choose(python), FPT_ERR_VERSION, "is a free-threaded Python: choose a Python " + ours);
  fs::create_symlink(python, folder.path() / "base/bin/python-link");
  EXPECT_EQ(choose((folder.path() / "base/bin/python-link").string()).status, FPT_ERR_VERSION);
}

TEST_F(EnvironmentTest, AnInstallationWithoutItsLibraryIsIncomplete) {
  const fs::path python = folder.write("base/bin/python" + ours, "\177ELF", true);
  EXPECT_FAILS(choose(python.string()), FPT_ERR_INTERPRETER,
               "the standard library of Python " + ours + " is not in " + (folder.path() / "base/lib").string());
}

TEST_F(EnvironmentTest, AVirtualEnvironmentWhoseHomeHoldsLinksIsFollowed) {
  install("base");
  make_venv("venv", "base");
  folder.write("venv/pyvenv.cfg", "home = " + (folder.path() / "links" / "bin").string() + "\n");
  fs::create_directories(folder.path() / "links" / "bin");
  ASSERT_OK(choose((folder.path() / "venv/bin/python").string(), library("base")));
}

TEST_F(EnvironmentTest, ThePythonLibraryOfAnotherInstallationIsRefused) {
  const fs::path python = install("base");
  install("base2");
  EXPECT_FAILS(choose(python.string(), library("base2")), FPT_ERR_VERSION,
               "belongs to the Python " + ours + " installed in " + (folder.path() / "base").string() +
                   ", but this program uses the Python library " + library("base2") + " of Python " + ours);
  EXPECT_OK(choose(python.string(), library("base")));
}

TEST_F(EnvironmentTest, TheLibraryOfTheRedHatFamilyIsFound) {
  const fs::path python = folder.write("base/bin/python" + ours, "\177ELF", true);
  folder.write("base/lib64/python" + ours + "/os.py", "");
  ASSERT_OK(choose(python.string()));
  EXPECT_EQ(choice.prefix, folder.path() / "base");
  EXPECT_EQ(choice.version, ours);
}

TEST_F(EnvironmentTest, AnotherVersionFitsWhereThisLibraryHasAHalfForIt) {
  const fs::path python = install("base", other);
  EXPECT_EQ(choose(python.string()).status, FPT_ERR_VERSION);
  const fs::path half = own_folder() / ("libftn_pytorch_python" + other + ".so");
  std::ofstream(half).close();
  const test::Outcome outcome = choose(python.string());
  const test::Outcome third = choose(install("third", ours + "9").string());
  const test::Outcome mixed = choose(python.string(), library("base"));
  fs::remove(half);
  ASSERT_OK(outcome);
  EXPECT_EQ(choice.version, other);
  EXPECT_FAILS(third, FPT_ERR_VERSION, "was built for Python " + ours + " and " + other);
  EXPECT_FAILS(mixed, FPT_ERR_VERSION, "uses the Python library " + library("base") + " of Python " + ours);
}

TEST_F(EnvironmentTest, TheLibpythonIsFoundInAllFoldersOfLibraries) {
  PythonChoice base;
  base.version = ours;
  base.prefix = folder.path().string();
  base.executable = "python";
  EXPECT_FAILS(test::outcome_of([&] { libpython_of(base); }), FPT_ERR_INTERPRETER,
               "python is a Python without a shared libpython (no libpython" + ours + ".so.1.0 in ");
  utsname machine{};
  uname(&machine);
  for (const std::string& place :
       {"lib/" + std::string(machine.machine) + "-linux-gnu", std::string("lib64"), std::string("lib")}) {
    const fs::path file = folder.write(place + "/libpython" + ours + ".so.1.0", "");
    EXPECT_EQ(libpython_of(base), file) << place;
  }
}

TEST_F(EnvironmentTest, ARelativePathIsRelativeToTheWorkingDirectoryOfNow) {
  install("base");
  const fs::path before = fs::current_path();
  fs::current_path(folder.path());
  const test::Outcome outcome = choose("base/bin/python");
  fs::current_path(before);
  ASSERT_OK(outcome);
  EXPECT_EQ(choice.executable, folder.path() / "base/bin/python");
}

TEST_F(EnvironmentTest, PythonhomeOfNowhereIsRefused) {
  const fs::path python = install("base");
  const test::Variable wrong("PYTHONHOME", "/nowhere");
  EXPECT_FAILS(choose(python.string()), FPT_ERR_PYTHONHOME,
               "PYTHONHOME is \"/nowhere\", which is not the home of Python");
  EXPECT_FAILS(choose(python.string()), FPT_ERR_PYTHONHOME, "unset PYTHONHOME, it is not needed");
}

TEST_F(EnvironmentTest, PythonhomeOfAnotherInstallationIsRefused) {
  const fs::path python = install("base");
  install("foreign");
  const test::Variable wrong("PYTHONHOME", (folder.path() / "foreign").string());
  EXPECT_EQ(choose(python.string()).status, FPT_ERR_PYTHONHOME);
}

TEST_F(EnvironmentTest, PythonhomeOfThisInstallationIsFine) {
  const fs::path python = install("base");
  const std::string prefix = (folder.path() / "base").string();
  const test::Variable right("PYTHONHOME", prefix + ":" + prefix);
  EXPECT_OK(choose(python.string()));
}

TEST(ObjectFile, IsKnownForAnAddressOfThisProgram) {
  EXPECT_EQ(resolved(object_file_of(reinterpret_cast<const void*>(&choose_python))), program_path());
  EXPECT_EQ(object_file_of(nullptr), "");
}

TEST(ProgramPath, IsAFile) { EXPECT_TRUE(fs::is_regular_file(program_path())); }

TEST(PythonPackage, IsFoundRelativeToTheLibrary) {
  EXPECT_TRUE(fs::is_regular_file(fs::path(python_package_folder()) / "ftn_pytorch" / "_embed.py"));
}

}  // namespace
}  // namespace fpt
