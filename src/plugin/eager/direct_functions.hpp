// SPDX-License-Identifier: MIT
/// The functions of torch by libtorch alone.
#pragma once

#include <memory>
#include <string>

#include "direct/delegating_runner.hpp"

namespace fpt::direct {

/// What torch_call and the named functions of Fortran call. Whatever libtorch has not, or cannot be called with, goes
/// to the functions of torch in Python.
class DirectFunctions : public DelegatingRunner {
 public:
  explicit DirectFunctions(bool same_layout) : same_layout_(same_layout) {}

  void run(const CallRequest& request) override;

 private:
  std::unique_ptr<Runner> make_python() override;

  const bool same_layout_;
};

}  // namespace fpt::direct
