// SPDX-License-Identifier: MIT
/// The functions of torch: those for callers that count axes as Fortran does, and all others by the engine of this
/// process. Knows nothing of Python.
#pragma once

#include <memory>
#include <string_view>

#include "direct/forwarding_runner.hpp"

namespace fpt {

/// What torch_call and the named functions of Fortran call.
class TorchFunctions : public ForwardingRunner {
 public:
  explicit TorchFunctions(bool same_layout);

  void run(const CallRequest& request) override;

 private:
  Runner& other() override { return *of_engine_; }

  const bool same_layout_;
  const std::unique_ptr<Runner> of_engine_;
};

}  // namespace fpt
