// SPDX-License-Identifier: MIT
/// The boundary: nothing thrown gets past it, the caller's floating-point environment comes back as it was, and what is
/// observed is measured here.
#pragma once

#include <new>

#include "base/error.hpp"
#include "base/fpenv.hpp"
#include "observe/observe.hpp"

namespace fpt {

/// Run `body`; failures become a status and the text of this thread.
template <class Body>
fpt_status guard(Body&& body) noexcept {
  try {
    body();
    return FPT_OK;
  } catch (const Error& error) {
    return remember_error(error.status(), error.text());
  } catch (const std::bad_alloc&) {
    return remember_error(FPT_ERR_MEMORY, "out of memory");
  } catch (const std::exception& error) {
    return remember_error(FPT_ERR_INTERNAL, error.what());
  } catch (...) {
    return remember_error(FPT_ERR_INTERNAL, "exception of unknown type");
  }
}

/// The same for bodies that compute in the floating-point environment of Python and torch.
template <class Body>
fpt_status guard_call(Body&& body) noexcept {
  const HostState host;
  return guard(body);
}

/// The same for calls that are observed where that is asked for. `facts` makes the CallFacts.
template <class Facts, class Body>
fpt_status guard_call(const Facts& facts, Body&& body) noexcept {
  if (is_observed()) return observe_call(facts(), [&] { return guard_call(body); });
  return guard_call(body);
}

}  // namespace fpt
