// SPDX-License-Identifier: MIT
/// The boundary: nothing thrown gets past it, and the caller's floating-point environment comes back as it was.
#pragma once

#include <new>

#include "base/error.hpp"
#include "base/fpenv.hpp"
#include "python/interpreter.hpp"

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

/// The same for bodies that need Python, which is started if it does not run.
template <class Body>
fpt_status guard_python(Body&& body) noexcept {
  const HostState host;
  return guard([&] {
    if (!is_started()) ensure_started();
    const InterpreterLock gil;
    body();
  });
}

}  // namespace fpt
