// SPDX-License-Identifier: MIT
/// A TorchScript model: its methods, locks, mode and freezing.
#pragma once

#include <map>

#include "plugin/model/derivatives.hpp"
#include "plugin/model/method.hpp"
#include "plugin/training/optimizer.hpp"

namespace fpt::direct {

/// Where the parts of a model keep their mode. Parts of a model that was saved frozen have none.
class Mode {
 public:
  Mode() = default;
  explicit Mode(const torch::jit::Module& module) {
    for (const torch::jit::Module& part : module.modules())
      if (const auto slot = part.type()->findAttributeSlot("training"))
        if (part._ivalue()->getSlot(*slot).isBool()) places_.emplace_back(part._ivalue(), *slot);
  }
  void set(bool training) const {
    for (const auto& [part, slot] : places_) part->setSlot(slot, training);
  }

 private:
  std::vector<std::pair<torch::jit::ObjectPtr, std::size_t>> places_;
};

/// Training mode until the end of the scope, then the mode of predictions.
class InTraining {
 public:
  InTraining(const Mode& mode, bool afterwards) : mode_(mode), afterwards_(afterwards) { mode_.set(true); }
  ~InTraining() { mode_.set(afterwards_); }
  InTraining(const InTraining&) = delete;
  InTraining& operator=(const InTraining&) = delete;

 private:
  const Mode& mode_;
  const bool afterwards_;
};

/// Calls of a method that only computes run side by side; everything that changes the model has it alone.
///
/// A file may hold the state of an optimizer beside the model: training then goes on where it stopped.
class ScriptModel : public Model {
 public:
  explicit ScriptModel(Settings settings);

  void reload() override;
  void save(const std::string& file) override;
  int64_t restore(const std::string& file, bool fallback, std::optional<int64_t> step) override;
  void assign(std::vector<NamedTensor> values) override;
  bool has(std::string_view name) override;
  void call(std::string_view name, Inputs inputs, int32_t flags, DirectAnswer& answer) override;
  void parameters(DirectAnswer& answer) override;
  void create_optimizer(const OptimizerSettings& settings) override;
  Training train(Inputs inputs, Inputs targets) override;

 private:
  /// What a file holds, ready to be used.
  struct State {
    torch::jit::Module module;
    Mode mode;
    std::optional<torch::jit::Module> twin;  // the same parameters, with code of its own
    std::unique_ptr<Optimizer> optimizer;
    FramePool training_frames;
    std::map<std::string, std::unique_ptr<Method>, std::less<>> methods;
    Method* forward = nullptr;
    bool is_frozen = false, replaces_attributes = false;
    bool parameters_are_out = false;  ///< the program may change them at any time
    std::atomic<int> calls_until_frozen{0};
  };

  std::unique_ptr<State> read(const std::string& file) const;
  Method& method(std::string_view name) const;
  void freeze_forward();
  /// The model is about to change: forward computes with its parameters themselves until that has ended.
  void thaw();
  void run(Method& method, Inputs inputs, int32_t flags, DirectAnswer& answer);
  /// The same with a graph, through the parameters themselves.
  void run_recorded(Method& method, Inputs inputs, DirectAnswer& answer);
  void derive(const Derivative& wanted, Inputs inputs, DirectAnswer& answer);
  /// What the text of an exception of the model ends with: what it was called with, and which type it wants.
  std::string called_with(Inputs inputs) const;

  Settings settings_;
  std::unique_ptr<State> state_;
  mutable std::shared_mutex mutex_;
};

}  // namespace fpt::direct
