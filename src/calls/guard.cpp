// SPDX-License-Identifier: MIT
#include "calls/guard.hpp"

#include <new>

#include "base/error.hpp"
#include "base/kept_lock.hpp"
#include "base/last_script.hpp"
#include "base/visit.hpp"

namespace fpt {
namespace {

/// The module knows who leaves the last script.
fpt_status visit_module(Body body) noexcept {
  const Visit visit;
  const WithoutKeptLock others;
  return guard(body);
}

}  // namespace

fpt_status report_exception(const std::exception_ptr& thrown) noexcept {
  try {
    std::rethrow_exception(thrown);
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

fpt_status guard_call(Body body) noexcept {
  const Visit visit;
  const WithoutKeptLock others;
  leave_last_script();
  return guard(body);
}

fpt_status guard_call(const CallFacts& facts, Body body) noexcept {
  if (!is_observed()) return visit_module(body);
  Crossing crossing(facts);
  const fpt_status status = visit_module(body);
  crossing.end(status);
  return status;
}

}  // namespace fpt
