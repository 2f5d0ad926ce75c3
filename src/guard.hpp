// SPDX-License-Identifier: MIT
/// The boundary: nothing thrown gets past it, the caller's floating-point environment comes back as it was, and what is
/// observed is measured here.
#pragma once

#include "ftn_pytorch.h"
#include "observe/observe.hpp"

namespace fpt {

/// What a guard runs: a callable that outlives the guard. No template, so that the handlers are compiled once, and
/// stack traces stay readable.
class Body {
 public:
  template <class Callable>
  Body(const Callable& callable) noexcept
      : callable_(&callable), run_([](const void* body) { (*static_cast<const Callable*>(body))(); }) {}
  void operator()() const { run_(callable_); }

 private:
  const void* callable_;
  void (*run_)(const void* callable);
};

/// Run `body`; failures become a status and the text of this thread.
fpt_status guard(Body body) noexcept;

/// The same for bodies that compute in the floating-point environment of Python and torch.
fpt_status guard_call(Body body) noexcept;

/// The same for calls that are observed where that is asked for.
fpt_status guard_call(const CallFacts& facts, Body body) noexcept;

}  // namespace fpt
