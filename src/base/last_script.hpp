// SPDX-License-Identifier: MIT
/// Which script may have left modes of torch on this thread: gradients, a default type, ... Knows nothing of Python.
///
/// Looking at all modes after each call would take a third of a small one. So they are looked at when somebody else
/// uses torch: another script, a saved model, a tensor of the program.
#pragma once

#include <cstdint>

#include "base/fpenv.hpp"

namespace fpt {

/// Number of the script that has run on this thread, and nobody has used torch since; 0: none. initial-exec: read in
/// each call.
FPT_API extern __thread uint64_t last_script __attribute__((tls_model("initial-exec")));

/// What puts the modes of the program back on this thread. Given by the half with Python, before a script can run.
FPT_API void provide_modes(void (*put_back)() noexcept) noexcept;
FPT_API void put_modes_back() noexcept;

/// Before torch is used on this thread by anybody but that script. Not within a call: what a procedure of the program
/// computes there belongs to the script.
inline void leave_last_script() noexcept {
  if (last_script != 0 && !is_nested_call()) put_modes_back();
}

}  // namespace fpt
