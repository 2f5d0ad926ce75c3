// SPDX-License-Identifier: MIT
#include "plugin/eager/direct_scheduler.hpp"

#include "base/error.hpp"
#include "direct/object_arguments.hpp"

namespace fpt::direct {

void DirectScheduler::call(std::string_view function, Args inputs, const Targets& targets) {
  const WarningsLater warnings;  // without the lock of the optimizer
  if (!optimizer_->unless_python([&] { return call_here(function, inputs, targets); }))
    other().call(function, inputs, targets);
}

bool DirectScheduler::call_here(std::string_view function, Args inputs, const Targets& targets) {
  if (targets.results || targets.tensor) return false;
  if (function == "step" && inputs.count == 0 && targets.outputs.count == 0) return optimizer_->step(*running_);
  if (function != "last_lr" || inputs.count != 1 || targets.outputs.count != 1 || integer_in(inputs[0]) != 1)
    return false;
  deliver_real(running_->rate, targets.outputs[0], "the learning rate");
  return true;
}

}  // namespace fpt::direct
