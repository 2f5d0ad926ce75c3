// SPDX-License-Identifier: MIT
/// The half with Python, which is not beside this program: it says so, and nothing of Python is in the process.
#include <dlfcn.h>

#include "calls/python_side.hpp"
#include "python/python_library.hpp"
#include "support.hpp"
#include "values/engine.hpp"

namespace fpt {
namespace {

TEST(PythonLibrary, SaysWhereItIsMissing) {
  const auto missing = [](auto use) {
    EXPECT_FAILS(test::outcome_of(use), FPT_ERR_INTERPRETER,
                 "the part of this library that runs Python " + python_to_start({}).version + " is not installed");
  };
  missing([] { open_python_library(); });
  missing([] { python_side(); });
  missing([] { engine(); });
  EXPECT_EQ(opened_engine(), nullptr);
  EXPECT_FALSE(python_is_started());
}

TEST(PythonLibrary, OfAnotherBuildIsRefused) {
  EXPECT_FALSE(announce_python_library("0.0.0", FPT_ABI));
  EXPECT_FALSE(announce_python_library(FPT_VERSION, FPT_ABI + 1));
  EXPECT_FALSE(python_is_started());
}

TEST(PythonLibrary, KnowsWhetherPythonRuns) { EXPECT_FALSE(python_runs()); }

TEST(PythonLibrary, KnowsThePythonLibraryOfThisProcess) {
  EXPECT_EQ(loaded_python().file, "");
  EXPECT_EQ(loaded_python().version, "");
  const PythonChoice choice = python_to_start({});
  EXPECT_EQ(chosen_executable(), choice.executable);
  // as a plug-in of a program brings it, unseen by others
  const std::string file = libpython_of(choice);
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_TRUE(library) << dlerror();
  EXPECT_EQ(loaded_python().file, file);
  EXPECT_EQ(loaded_python().version, choice.version);
  EXPECT_FALSE(python_runs());
  dlclose(library);
}

}  // namespace
}  // namespace fpt
