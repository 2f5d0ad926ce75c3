// SPDX-License-Identifier: MIT
#include "guard.hpp"

#include <exception>
#include <new>

#include "base/error.hpp"
#include "base/kept_lock.hpp"
#include "base/visit.hpp"

namespace fpt {

fpt_status report_exception() noexcept {
  try {
    throw;
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
  return guard(body);
}

fpt_status guard_call(const CallFacts& facts, Body body) noexcept {
  if (!is_observed()) return guard_call(body);
  Crossing crossing(facts);
  const fpt_status status = guard_call(body);
  crossing.end(status);
  return status;
}

}  // namespace fpt
