// SPDX-License-Identifier: MIT
/// What both paths hold against a function and its arguments: when they look, and what they say. Knows nothing of
/// Python.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "arrays/device.hpp"
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

/// @param argument  "input 2 of forward of net"
[[noreturn]] inline void refuse_nameless(const std::string& argument) {
  fail(FPT_ERR_ARGUMENT, argument,
       " has no name but follows named arguments: name all of them, or put those without a name first");
}

/// @param what  "arguments"
[[noreturn]] inline void refuse_same_name(const char* what, const std::string& function, std::string_view name) {
  fail(FPT_ERR_ARGUMENT, "two ", what, " of ", function, " are called \"", name, '"');
}

[[noreturn]] inline void refuse_some_names(const std::string& function) {
  fail(FPT_ERR_RESULT_NAME, function, ": either all outputs have names or none has");
}

/// @param what  "a tensor"
inline void require_passable_rank(const char* what, int rank) {
  if (rank > FPT_MAX_RANK)
    fail(FPT_ERR_RANK, what, " of ", rank, " axes cannot be passed to Fortran; at most ", FPT_MAX_RANK, " can");
}

/// @param why  "which nobody can use"
[[noreturn]] inline void refuse_memory(Device device, const char* why) {
  fail(FPT_ERR_DEVICE, "the array is in memory of ", device_name(device), ", ", why);
}

/// Of a tensor of torch.
inline void require_numbers(const void* memory, int64_t count) {
  if (!memory && count > 0)
    fail(FPT_ERR_RESULT_TYPE, "a tensor without memory (fake, meta or zero tensor) cannot be handed to Fortran");
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
