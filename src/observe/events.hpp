// SPDX-License-Identifier: MIT
/// Calls and loads that have ended, and two ways to tell of them: the table of FTN_PYTORCH_PROFILE adds their times up,
/// the file of FTN_PYTORCH_TRACE has each of them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ftn_pytorch.h"

namespace fpt {

/// Times in nanoseconds of the steady clock.
struct Event {
  std::string name;      ///< "net.ftn_pytorch_forward"
  const char* category;  ///< "crossing" or "load"
  int64_t begin = 0, end = 0;
  fpt_status status = FPT_OK;
  int64_t python_begin = 0, python_end = 0;  ///< of the function of the script; 0 where no Python took part
  int64_t own_time = 0;                      ///< what observation itself took of it
  int32_t inputs = -1;                       ///< how many; -1 where no function was called
  // NOLINTNEXTLINE(readability-redundant-member-init): lists that leave it out would warn
  std::string_view file = {};  ///< that it is about

  bool has_python() const noexcept { return python_end > 0; }
  int64_t time() const noexcept { return end - begin - own_time; }
  int64_t python_time() const noexcept { return python_end - python_begin; }
};

FPT_API int64_t time_now() noexcept;

/// Value of a variable that asks for something; empty for none and for "0".
std::string variable(const char* name);

/// Read the variables. A file that cannot be written is a warning, and nothing is traced.
void start_events();
bool keeps_events() noexcept;
/// From any thread. Never throws.
void add_event(const Event& event) noexcept;
/// The table goes to standard error, or into its file.
void end_events();

/// The table, longest first; empty if there was no call. "Crossing" is what a call took beside its Python part.
/// @param wall  duration in nanoseconds that shares refer to
std::string profile_table(int64_t wall);

/// Whether there is a trace: the JSON array format of Chrome's trace viewer (Trace Event Format: chrome://tracing,
/// ui.perfetto.dev), which is complete JSON after every event, however the program ends.
FPT_API bool traces() noexcept;

/// A text as a JSON string, with its quotes.
std::string json_text(std::string_view text);

}  // namespace fpt
