// SPDX-License-Identifier: MIT
/// What all tests of the core share: described arguments, expected failures, files and variables that go away again.
/// Knows nothing of Python; script.hpp does.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <complex>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "arrays/arg.hpp"
#include "arrays/array.hpp"
#include "base/error.hpp"
#include "ftn_pytorch.h"

namespace fpt::test {

/// Element type of the interface that holds a C++ type.
template <class T>
constexpr int32_t dtype_for() {
  if constexpr (std::is_same_v<T, bool>) return FPT_BOOL;
  if constexpr (std::is_same_v<T, int8_t>) return FPT_INT8;
  if constexpr (std::is_same_v<T, int16_t>) return FPT_INT16;
  if constexpr (std::is_same_v<T, int32_t>) return FPT_INT32;
  if constexpr (std::is_same_v<T, int64_t>) return FPT_INT64;
  if constexpr (std::is_same_v<T, float>) return FPT_FLOAT32;
  if constexpr (std::is_same_v<T, double>) return FPT_FLOAT64;
  if constexpr (std::is_same_v<T, std::complex<float>>) return FPT_COMPLEX64;
  if constexpr (std::is_same_v<T, std::complex<double>>) return FPT_COMPLEX128;
  if constexpr (std::is_same_v<T, uint8_t>) return FPT_UINT8;
  return FPT_NONE;
}

/// A status and the text that came with it.
struct Outcome {
  fpt_status status = FPT_OK;
  std::string text;
};

inline testing::AssertionResult succeeded(const Outcome& outcome) {
  if (outcome.status == FPT_OK) return testing::AssertionSuccess();
  return testing::AssertionFailure() << status_name(outcome.status) << ": " << outcome.text;
}

inline testing::AssertionResult failed(const Outcome& outcome, fpt_status status, const std::string& part) {
  if (outcome.status == status && outcome.text.find(part) != std::string::npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "expected " << status_name(status) << " with \"" << part << "\", got "
                                     << status_name(outcome.status) << ": " << outcome.text;
}

#define EXPECT_OK(outcome) EXPECT_TRUE(fpt::test::succeeded(outcome))
#define ASSERT_OK(outcome) ASSERT_TRUE(fpt::test::succeeded(outcome))
/// The status, and a text that contains `part`.
#define EXPECT_FAILS(outcome, status, part) EXPECT_TRUE(fpt::test::failed(outcome, status, part))

/// Run something that throws Error on failure.
template <class Body>
Outcome outcome_of(Body&& body) {
  try {
    body();
    return {};
  } catch (const Error& error) {
    return {error.status(), error.text()};
  }
}

template <class T>
fpt_arg array_arg(T* data, const std::vector<int64_t>& extents, int32_t access = FPT_IN,
                  const std::vector<int64_t>& strides = {}) {
  fpt_arg arg;
  fpt_arg_array(&arg, const_cast<std::remove_const_t<T>*>(data), dtype_for<std::remove_const_t<T>>(),
                static_cast<int32_t>(extents.size()), extents.data(), strides.empty() ? nullptr : strides.data(),
                access);
  return arg;
}

template <class T>
fpt_arg in(std::vector<T>& values, std::vector<int64_t> extents = {}) {
  if (extents.empty()) extents = {static_cast<int64_t>(values.size())};
  return array_arg(values.data(), extents, FPT_IN);
}

template <class T>
fpt_arg out(std::vector<T>& values, std::vector<int64_t> extents = {}) {
  if (extents.empty()) extents = {static_cast<int64_t>(values.size())};
  return array_arg(values.data(), extents, FPT_OUT);
}

/// A scalar input; its value is inside the description.
template <class T, class = std::enable_if_t<std::is_arithmetic_v<T>>>
fpt_arg in(T value) {
  return array_arg(&value, {}, FPT_IN);
}

inline fpt_arg in(const char* text) {
  fpt_arg arg;
  describe_text(arg, text, static_cast<int64_t>(std::char_traits<char>::length(text)), FPT_IN);
  return arg;
}

/// A scalar or text output.
template <class T>
fpt_arg out(T& variable) {
  return array_arg(&variable, {}, FPT_OUT);
}

inline fpt_arg out(std::string& text) {
  fpt_arg arg;
  describe_text(arg, text.data(), static_cast<int64_t>(text.size()), FPT_OUT);
  return arg;
}

inline fpt_arg named(const std::string& name, fpt_arg arg) {
  name_arg(arg, name.data(), static_cast<int64_t>(name.size()));
  return arg;
}

/// Sets an environment variable, or removes it where `value` is null, until the end of the scope.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    const char* old = std::getenv(name);
    had_ = old != nullptr;
    if (had_) old_ = old;
    value ? setenv(name, value, 1) : unsetenv(name);
  }
  Variable(const char* name, const std::string& value) : Variable(name, value.c_str()) {}
  ~Variable() { had_ ? setenv(name_, old_.c_str(), 1) : unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  bool had_ = false;
  std::string old_;
};

/// An empty folder, removed with all that is in it at the end of the scope.
class Folder {
 public:
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "ftn_pytorch_XXXXXX").string();
    path_ = std::filesystem::canonical(mkdtemp(pattern.data()));
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  const std::filesystem::path& path() const { return path_; }

  /// A file with this content; folders on its way are made.
  std::filesystem::path write(const std::string& name, const std::string& content, bool executable = false) const {
    const std::filesystem::path file = path_ / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << content;
    if (executable) std::filesystem::permissions(file, std::filesystem::perms::owner_all);
    return file;
  }

 private:
  std::filesystem::path path_;
};

/// Whether this process has a file open.
inline bool has_open(const std::filesystem::path& file) {
  std::error_code ignored;
  for (const auto& each : std::filesystem::directory_iterator("/proc/self/fd"))
    if (std::filesystem::read_symlink(each.path(), ignored) == file) return true;
  return false;
}

}  // namespace fpt::test
