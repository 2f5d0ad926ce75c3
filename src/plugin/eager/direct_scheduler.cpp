// SPDX-License-Identifier: MIT
#include "plugin/eager/direct_scheduler.hpp"

#include "base/error.hpp"
#include "direct/object_arguments.hpp"

namespace fpt::direct {

void DirectScheduler::run(const CallRequest& request) {
  const WarningsLater warnings;  // without the lock of the optimizer
  if (!optimizer_->unless_python([&] { return run_here(request); })) other().run(request);
}

bool DirectScheduler::run_here(const CallRequest& request) {
  const std::string_view function = request.function;
  const Args inputs = request.inputs;
  const Targets& targets = request.targets;
  if (targets.results || targets.tensor) return false;
  if (function == "step" && inputs.count == 0 && targets.outputs.count == 0) return optimizer_->step(*running_);
  if (function != "last_lr" || inputs.count != 1 || targets.outputs.count != 1 || integer_of(inputs[0]) != 1)
    return false;
  deliver_real(running_->rate, targets.outputs[0], "the learning rate");
  return true;
}

}  // namespace fpt::direct
