// SPDX-License-Identifier: MIT
/// Scripts written down in the test that uses them, and their functions called through the C interface.
#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "support.hpp"

namespace fpt::test {

/// A status of the C interface with the text that this thread has for it.
inline Outcome outcome(fpt_status status) {
  const char* text = nullptr;
  int64_t length = 0;
  fpt_error_text(&text, &length);
  return {status, std::string(text, static_cast<std::size_t>(status == FPT_OK ? 0 : length))};
}

inline fpt_arg option(const std::string& name, const char* value) { return named(name, in(value)); }

/// A loaded script. Each has a file of its own; `evaluate` runs an expression among its names.
class Script {
 public:
  explicit Script(const std::string& source, std::vector<fpt_arg> options = {}, std::vector<fpt_arg> config = {}) {
    static int number = 0;
    name_ = "script_" + std::to_string(++number);
    path_ = folder().write(name_ + ".py", source + "\ndef evaluate_(expression): return eval(expression)\n").string();
    loaded_ = outcome(fpt_module_load(&handle_, 0, path_.data(), static_cast<int64_t>(path_.size()), options.data(),
                                      static_cast<int32_t>(options.size()), config.data(),
                                      static_cast<int32_t>(config.size())));
    EXPECT_OK(loaded_);
  }
  ~Script() { fpt_module_free(handle_); }
  Script(const Script&) = delete;
  Script& operator=(const Script&) = delete;

  fpt_module handle() const { return handle_; }
  const std::string& name() const { return name_; }
  const std::string& path() const { return path_; }

  Outcome call(const std::string& function, std::vector<fpt_arg> inputs = {}, std::vector<fpt_arg> outputs = {},
               fpt_results* results = nullptr) const {
    return outcome(fpt_module_call(handle_, function.data(), static_cast<int64_t>(function.size()), inputs.data(),
                                   static_cast<int32_t>(inputs.size()), outputs.data(),
                                   static_cast<int32_t>(outputs.size()), results));
  }

  Outcome forward(std::vector<fpt_arg> inputs, std::vector<fpt_arg> outputs = {}) const {
    return outcome(fpt_module_forward(handle_, inputs.data(), static_cast<int32_t>(inputs.size()), outputs.data(),
                                      static_cast<int32_t>(outputs.size()), nullptr, 0));
  }

  Outcome train(std::vector<fpt_arg> inputs, std::vector<fpt_arg> targets) {
    return outcome(fpt_module_train(handle_, inputs.data(), static_cast<int32_t>(inputs.size()), targets.data(),
                                    static_cast<int32_t>(targets.size()), &completed, &loss));
  }

  /// Value of a Python expression among the names of the script.
  double number(const std::string& expression) const {
    double value = 0;
    EXPECT_OK(call("evaluate_", {in(expression.c_str())}, {out(value)})) << expression;
    return value;
  }
  bool truth(const std::string& expression) const { return number("int(" + expression + ")") != 0; }
  std::string text(const std::string& expression) const {
    std::string value(4000, ' ');
    EXPECT_OK(call("evaluate_", {in(("str(" + expression + ")").c_str())}, {out(value)})) << expression;
    return trimmed(value.data(), static_cast<int64_t>(value.size()));
  }

  int32_t completed = -1;  // of the last train
  double loss = -1;

 private:
  static Folder& folder() {
    static Folder instance;
    return instance;
  }

  std::string name_, path_;
  fpt_module handle_ = 0;
  Outcome loaded_;
};

/// Results of a call, freed at the end of the scope.
struct Results {
  fpt_results handle = 0;
  ~Results() { fpt_results_free(handle); }
  int32_t count() const {
    int32_t n = -1;
    EXPECT_EQ(fpt_results_count(handle, &n), FPT_OK);
    return n;
  }
};

/// A tensor, freed at the end of the scope.
struct Tensor {
  fpt_tensor handle = 0;
  Tensor() = default;
  explicit Tensor(fpt_arg arg) { EXPECT_OK(outcome(fpt_tensor_set(&handle, &arg))); }
  ~Tensor() { fpt_tensor_free(handle); }
  Tensor(const Tensor&) = delete;
  Tensor& operator=(const Tensor&) = delete;
  fpt_arg arg() const {
    fpt_arg result;
    fpt_tensor_arg(handle, &result);
    return result;
  }
};

/// Receives all warnings until the end of the scope.
class CollectedWarnings {
 public:
  CollectedWarnings() {
    fpt_on_warning(receive);
    texts().clear();
  }
  ~CollectedWarnings() { fpt_on_warning(nullptr); }
  std::size_t count() const { return texts().size(); }
  std::string all() const {
    std::string joined;
    for (const std::string& text : texts()) joined += text + "\n";
    return joined;
  }

 private:
  static std::vector<std::string>& texts() {
    static std::vector<std::string> instance;
    return instance;
  }
  static void receive(const char* text, int64_t length) {
    texts().emplace_back(text, static_cast<std::size_t>(length));
  }
};

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

inline int64_t address(const void* memory) { return static_cast<int64_t>(reinterpret_cast<std::intptr_t>(memory)); }

}  // namespace fpt::test
