// SPDX-License-Identifier: MIT
/// The table of the plug-in in its two parts, and the guard of their functions: nothing is thrown across.
#pragma once

#include "plugin/failure.hpp"

namespace fpt::direct {

template <class Body>
fpt_status guard(Body&& body) noexcept {
  try {
    try {
      body();
      return FPT_OK;
    } catch (...) {
      rethrow_as(FPT_ERR_INTERNAL, "libtorch");
    }
  } catch (const Error& error) {
    return remember_error(error.status(), error.text());
  } catch (...) {
    return remember_error(FPT_ERR_MEMORY, "out of memory");
  }
}

/// FPT_DIRECT_NOT_HERE where `body` says false.
template <class Body>
fpt_status guard_or_elsewhere(const Body& body) noexcept {
  bool is_here = true;
  const fpt_status status = guard([&] { is_here = body(); });
  return is_here ? status : FPT_DIRECT_NOT_HERE;
}

/// Those for tensors of the program.
fpt_direct_tensors tensor_functions() noexcept;

}  // namespace fpt::direct
