// SPDX-License-Identifier: MIT
/// A runner that leaves everything to another one. Knows nothing of Python.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "calls/runner.hpp"

namespace fpt {

/// Functions of torch, or an object of it. What a derived class does not override is for the other runner.
class ForwardingRunner : public Runner {
 public:
  const std::string& backend() const noexcept override { return backend_; }
  bool has(const std::string& function) override { return other().has(function); }
  void reload() override { other().reload(); }
  void save(const std::string& file) override { other().save(file); }
  void checkpoint(const std::string& folder, int64_t keep, int64_t step) override {
    other().checkpoint(folder, keep, step);
  }
  int64_t restore(const std::string& file, bool fallback, int64_t step) override {
    return other().restore(file, fallback, step);
  }
  void publish(const std::string& network, Runner& target) override { other().publish(network, target); }
  void assign(const std::vector<NamedArray>& values) override { other().assign(values); }
  void run(const CallRequest& request) override { other().run(request); }
  void set_stream(void* stream, bool waits) override { other().set_stream(stream, waits); }
  void wait() override { other().wait(); }

 protected:
  virtual Runner& other() = 0;

 private:
  const std::string backend_ = "torch";
};

/// One owner of a runner that has several.
class SharedRunner final : public ForwardingRunner {
 public:
  explicit SharedRunner(std::shared_ptr<Runner> shared) : shared_(std::move(shared)) {}

 protected:
  Runner& other() override { return *shared_; }

 private:
  const std::shared_ptr<Runner> shared_;
};

}  // namespace fpt
