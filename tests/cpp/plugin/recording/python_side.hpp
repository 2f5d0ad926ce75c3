// SPDX-License-Identifier: MIT
/// Runs python_side.py, for tests in which both languages use one file or folder.
#pragma once

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace fpt::test {

/// A run of it, beside this process.
class PythonSide {
 public:
  explicit PythonSide(const std::string& arguments) {
    const char* python = std::getenv("FTN_PYTORCH_PYTHON");
    const char* script = std::getenv("FPT_TEST_PYTHON_SIDE");
    EXPECT_TRUE(python && script);
    const std::string command = "exec \"" + std::string(python) + "\" \"" + script + "\" 2>&1 " + arguments;
    stream_ = popen(command.c_str(), "re");
  }
  ~PythonSide() {
    if (stream_) pclose(stream_);
  }
  PythonSide(const PythonSide&) = delete;

  std::string line() {
    char text[4096] = "";
    if (!stream_ || !std::fgets(text, sizeof text, stream_)) return {};
    std::string result = text;
    if (!result.empty() && result.back() == '\n') result.pop_back();
    return result;
  }
  /// All that is left of it.
  std::string rest() {
    std::string all;
    for (std::string next = line(); !next.empty(); next = line()) all += (all.empty() ? "" : "\n") + next;
    return all;
  }

 private:
  std::FILE* stream_ = nullptr;
};

inline std::string python_side(const std::string& arguments) { return PythonSide(arguments).rest(); }

}  // namespace fpt::test
