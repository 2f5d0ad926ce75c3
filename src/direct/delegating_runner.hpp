// SPDX-License-Identifier: MIT
/// A runner that leaves to one of Python what it does not do itself. Knows nothing of Python.
#pragma once

#include <memory>
#include <mutex>

#include "direct/forwarding_runner.hpp"

namespace fpt {

/// What a derived class does not override is for Python, which is started for it.
class DelegatingRunner : public ForwardingRunner {
 public:
  void wait() override {
    if (!unless_python([] { return true; })) python().wait();
  }
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

 protected:
  Runner& other() override { return python(); }
  /// Under the lock.
  virtual std::unique_ptr<Runner> make_python() = 0;

 private:
  std::mutex mutex_;
  std::unique_ptr<Runner> python_;
};

}  // namespace fpt
