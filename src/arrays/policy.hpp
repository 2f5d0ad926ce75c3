// SPDX-License-Identifier: MIT
/// What both paths hold against a function and its arguments: when they look, and what they say. Knows nothing of
/// Python.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.hpp"

namespace fpt {

/// So many first calls of a function make everything afresh, and look for what it kept.
constexpr uint64_t checked_calls = 2;

/// @param argument  "input 2 (\"dt\")"
/// @param function  "ftn_pytorch_forward of net"
/// @param code      what to change: "script"
[[noreturn]] inline void refuse_change(const std::string& argument, const std::string& function, const char* code) {
  fail(FPT_ERR_INPUT_MODIFIED, argument, " was changed in place by ", function,
       " but not passed with torch_out: pass it so, or change a copy in the ", code, " (x = x.clone())");
}

/// @param copy  what the script should keep: "x.clone()"
inline void warn_of_kept(const std::string& argument, const std::string& function, const char* copy) {
  warn(concat(function, " kept ", argument, ", or a view of it, beyond the call. Its memory belongs to Fortran and ",
              "will change: keep ", copy, ", or load with inputs=\"copy\"."));
}

/// @param owner  what the argument is an input of
inline void warn_of_copies(const std::string& argument, const std::string& owner, const std::string& there,
                           const std::string& model) {
  warn(concat(argument, " of ", owner, " is on ", there, " and the model on ", model,
              ": it is copied in every call. Load with device=\"", there, '"'));
}

}  // namespace fpt
