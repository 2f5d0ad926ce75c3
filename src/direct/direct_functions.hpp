// SPDX-License-Identifier: MIT
/// The functions of torch by libtorch alone. Knows nothing of Python.
#pragma once

#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "calls/results.hpp"
#include "calls/runner.hpp"

namespace fpt {

/// What torch_call and the named functions of Fortran call. Whatever libtorch has not, or cannot be called with, goes
/// to the functions of torch in Python.
class DirectFunctions : public Runner {
 public:
  explicit DirectFunctions(bool same_layout) : same_layout_(same_layout) {}

  const std::string& backend() const noexcept override { return backend_; }
  bool has(const std::string& function) override { return python().has(function); }
  void reload() override { python().reload(); }
  void save(const std::string& file) override { python().save(file); }
  void checkpoint(const std::string& folder, int64_t keep, int64_t step) override {
    python().checkpoint(folder, keep, step);
  }
  int64_t restore(const std::string& file, bool fallback, int64_t step) override {
    return python().restore(file, fallback, step);
  }
  void publish(const std::string& network, Runner& target) override { python().publish(network, target); }
  void assign(const std::vector<NamedArray>& values) override { python().assign(values); }
  void forward(Args inputs, const Targets& targets, int32_t flags) override {
    python().forward(inputs, targets, flags);
  }
  TensorPtr forward_list(Args inputs, int32_t flags) override { return python().forward_list(inputs, flags); }
  void call(std::string_view function, Args inputs, const Targets& targets) override;
  std::unique_ptr<Runner> create(std::string_view function, Args inputs) override;
  Training train(Args inputs, Args targets, bool is_list) override { return python().train(inputs, targets, is_list); }
  void set_stream(void* stream, bool waits) override { python().set_stream(stream, waits); }
  void wait() override;

 private:
  Runner& python();
  /// Once for each function, in the log.
  void tell_of_python(std::string_view function);

  const std::string backend_ = "torch";
  const bool same_layout_;
  std::mutex mutex_;
  std::unique_ptr<Runner> python_;
  std::set<std::string> told_;
};

}  // namespace fpt
