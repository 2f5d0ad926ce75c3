// SPDX-License-Identifier: MIT
/// Training or evaluation mode of a TorchScript model.
#pragma once

#include "plugin/torch.hpp"

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

}  // namespace fpt::direct
