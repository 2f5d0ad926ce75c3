// SPDX-License-Identifier: MIT
/// A torch_loss that libtorch computes alone.
#pragma once

#include <string>

#include "plugin/eager/direct_functions.hpp"

namespace fpt::direct {

/// An object of a class of torch.nn that only calls a function of torch.nn.functional.
class DirectLoss : public DelegatingRunner {
 public:
  /// @param inputs  the name of the class, then its options
  /// Null for a class or an option that is for Python.
  static std::unique_ptr<Runner> make(Args inputs);

  void run(const CallRequest& request) override;

 private:
  DirectLoss(std::string kind, std::string_view function, std::string reduction);
  std::unique_ptr<Runner> make_python() override;

  const std::string kind_, function_, reduction_;  // the last one is empty where none was chosen
  DirectFunctions functions_{/*same_layout=*/false};
};

}  // namespace fpt::direct
