// SPDX-License-Identifier: MIT
/// A call of a module through the C interface: guarded, and observed where that is asked for. Knows nothing of Python.
#pragma once

#include "base/last_script.hpp"
#include "calls/guard.hpp"
#include "calls/runner.hpp"

namespace fpt {

/// Copies made for the call do not outlive it, whether it got as far as using them or not. FPT_ERR_HOOK for a function
/// without a name.
template <class Call>
fpt_status call_module(const CallFacts& facts, const Call& call) noexcept {
  const fpt_status status = guard_call(facts, [&] {
    require_arguments(facts.inputs);
    require_arguments(facts.others);
    if (facts.function.empty()) fail(FPT_ERR_HOOK, "the name of the function to call is empty");
    const RunnerUse runner(facts.module, facts.function);
    if (!runner->is_script()) leave_last_script();
    call(*runner);
  });
  discard_copies(facts.inputs);
  discard_copies(facts.others);
  return status;
}

/// Call a function, and `then`, which stores what it has given.
template <class Then>
fpt_status call_module(fpt_module module, const CallRequest& request, const Then& then) noexcept {
  const Args others = request.training ? request.goals : request.targets.outputs;
  return call_module(CallFacts(module, request.function, request.inputs, others), [&](Runner& runner) {
    runner.run(request);
    then();
  });
}

inline fpt_status call_module(fpt_module module, const CallRequest& request) noexcept {
  return call_module(module, request, [] {});
}

}  // namespace fpt
