// SPDX-License-Identifier: MIT
/// The half with Python, which is not beside this program: it is told so, and nothing of Python is in the process.
#include <filesystem>

#include "calls/python_side.hpp"
#include "python/python_library.hpp"
#include "support.hpp"
#include "values/engine.hpp"

namespace fpt {
namespace {

TEST(PythonLibrary, IsToldWhereItIsMissing) {
  const auto missing = [](auto use) {
    EXPECT_FAILS(test::outcome_of(use), FPT_ERR_INTERPRETER,
                 "the part of this library that runs Python is not installed");
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

TEST(PythonLibrary, KnowsTheLibpythonOfTheBuild) {
  EXPECT_TRUE(std::filesystem::is_regular_file(expected_libpython()));
  EXPECT_NE(expected_libpython().find("libpython"), std::string::npos);
}

}  // namespace
}  // namespace fpt
