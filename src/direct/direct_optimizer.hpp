// SPDX-License-Identifier: MIT
/// Optimizers of tensors by libtorch alone. Knows nothing of Python.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "direct/delegating_runner.hpp"
#include "direct/fpt_direct.h"

namespace fpt {

/// SGD, Adam or AdamW of tensors of the program. Whatever else is asked of it than to step, to forget gradients and to
/// tell or change a setting makes an optimizer of Python of it, with the same tensors and the same state.
class DirectOptimizer : public DelegatingRunner {
 public:
  /// @param inputs  name of the class, tensors, options, as for ftn_pytorch_optimizer of TorchFunctions
  /// Null for what only Python can make, or has something to say of.
  static std::unique_ptr<Runner> make(Args inputs);
  ~DirectOptimizer() override;

  void call(std::string_view function, Args inputs, const Targets& targets) override;

 private:
  DirectOptimizer(std::string kind, std::vector<TensorPtr> tensors, fpt_direct_training* training)
      : kind_(std::move(kind)), tensors_(std::move(tensors)), training_(training) {}
  /// False, and nothing is changed, for what only Python can do.
  bool call_here(std::string_view function, Args inputs, const Targets& targets);
  bool set(Args inputs);
  bool get(Args inputs, const Targets& targets);
  /// The optimizer of Python, which this one becomes.
  std::unique_ptr<Runner> make_python() override;

  const std::string kind_;
  const std::vector<TensorPtr> tensors_;
  fpt_direct_training* const training_;
};

}  // namespace fpt
