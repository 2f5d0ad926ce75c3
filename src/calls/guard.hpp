// SPDX-License-Identifier: MIT
/// The boundary: nothing thrown gets past it, the caller's floating-point environment comes back as it was, and what is
/// observed is measured here. Knows nothing of Python.
#pragma once

#include <cstdint>
#include <exception>
#include <string_view>

#include "ftn_pytorch.h"
#include "observe/observe.hpp"

namespace fpt {

/// Remember what was thrown: its status. Another library may have caught it, with a C++ library of its own
/// (`-static-libstdc++`), in which alone `throw;` would find it.
FPT_API fpt_status report_exception(const std::exception_ptr& thrown) noexcept;

/// Run `body`; failures become a status and the text of this thread.
template <class Callable>
fpt_status guard(const Callable& body) noexcept {
  try {
    body();
    return FPT_OK;
  } catch (...) {
    return report_exception(std::current_exception());
  }
}

/// A text of the library for the caller, who does not own it.
inline void hand_out(std::string_view found, const char** text, int64_t* length) noexcept {
  *text = found.data();
  *length = static_cast<int64_t>(found.size());
}

/// What a guard of a call runs: a callable that outlives it. No template, so that stack traces stay readable.
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

/// The same for bodies that compute in the floating-point environment of Python and torch.
fpt_status guard_call(Body body) noexcept;

/// The same for calls that are observed where that is asked for.
fpt_status guard_call(const CallFacts& facts, Body body) noexcept;

}  // namespace fpt
