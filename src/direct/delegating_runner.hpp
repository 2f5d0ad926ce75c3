// SPDX-License-Identifier: MIT
/// A runner that leaves to one of Python what it does not do itself. Knows nothing of Python.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "calls/runner.hpp"

namespace fpt {

/// What a derived class does not override is for Python, which is started for it.
class DelegatingRunner : public Runner {
 public:
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
  std::unique_ptr<Runner> create(std::string_view function, Args inputs) override {
    return python().create(function, inputs);
  }
  Training train(Args inputs, Args targets, bool is_list) override { return python().train(inputs, targets, is_list); }
  void set_stream(void* stream, bool waits) override { python().set_stream(stream, waits); }
  void wait() override {
    if (!unless_python([] { return true; })) python().wait();
  }

 protected:
  /// The runner of Python, made when it is first asked for.
  Runner& python() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!python_) python_ = make_python();
    return *python_;
  }
  /// What `body` says, which runs under a lock, and is not run once there is a runner of Python: false.
  template <class Body>
  bool unless_python(const Body& body) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return !python_ && body();
  }
  /// Under the lock.
  virtual std::unique_ptr<Runner> make_python() = 0;

 private:
  const std::string backend_ = "torch";
  std::mutex mutex_;
  std::unique_ptr<Runner> python_;
};

}  // namespace fpt
