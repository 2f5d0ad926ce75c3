// SPDX-License-Identifier: MIT
/// The table that FTN_PYTORCH_PROFILE asks for: calls and time of each function.
#pragma once

#include <cstdint>
#include <string>

namespace fpt {

/// Times of one call, in nanoseconds.
struct CallTimes {
  int64_t whole = 0;
  int64_t python = -1;  ///< the function of the script itself; -1 where no Python took part
};

/// Add a call of a function to the table. From any thread.
void add_to_profile(const std::string& function, const CallTimes& times, bool failed);

/// The table, longest first; empty if there was no call. "Crossing" is what a call took beside its Python part.
/// @param wall  duration in nanoseconds that shares refer to
std::string profile_table(int64_t wall);

}  // namespace fpt
