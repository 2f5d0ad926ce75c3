// SPDX-License-Identifier: MIT
/// Optimizers of tensors by libtorch alone. Knows nothing of Python.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "calls/runner.hpp"
#include "direct/fpt_direct.h"

namespace fpt {

/// SGD, Adam or AdamW of tensors of the program. Whatever else is asked of it than to step, to forget gradients and to
/// tell or change a setting makes an optimizer of Python of it, with the same tensors and the same state.
class DirectOptimizer : public Runner {
 public:
  /// @param inputs  name of the class, tensors, options, as for ftn_pytorch_optimizer of TorchFunctions
  /// Null for what only Python can make, or has something to say of.
  static std::unique_ptr<Runner> make(Args inputs);
  ~DirectOptimizer() override;

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
  std::unique_ptr<Runner> create(std::string_view function, Args inputs) override {
    return python().create(function, inputs);
  }
  Training train(Args inputs, Args targets, bool is_list) override { return python().train(inputs, targets, is_list); }
  void set_stream(void* stream, bool waits) override { python().set_stream(stream, waits); }
  void wait() override {}

 private:
  DirectOptimizer(std::string kind, std::vector<TensorPtr> tensors, fpt_direct_training* training)
      : kind_(std::move(kind)), tensors_(std::move(tensors)), training_(training) {}
  /// False, and nothing is changed, for what only Python can do.
  bool call_here(std::string_view function, Args inputs, const Targets& targets);
  bool set(Args inputs);
  bool get(Args inputs, const Targets& targets);
  /// The optimizer of Python, which this one becomes.
  Runner& python();
  std::unique_ptr<Runner> as_python();

  const std::string kind_, backend_ = "torch";
  const std::vector<TensorPtr> tensors_;
  fpt_direct_training* const training_;
  std::mutex mutex_;
  std::unique_ptr<Runner> python_;
};

}  // namespace fpt
