// SPDX-License-Identifier: MIT
/// The file that FTN_PYTORCH_TRACE asks for, in the JSON array format of Chrome's trace viewer (Trace Event Format:
/// chrome://tracing, ui.perfetto.dev). It is complete JSON after every event, however the program ends.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace fpt {

/// Open the file. A failure is a warning, and nothing is traced.
/// @param name  of the file; see name_for_rank()
void start_trace(const std::string& name);

bool traces() noexcept;

struct TraceEvent {
  std::string name;
  const char* category;
  int64_t begin, end;     ///< nanoseconds of the steady clock
  std::string arguments;  ///< members of a JSON object, without braces
};

/// Write a complete event ("ph": "X") of the calling thread. Never throws.
void trace(const TraceEvent& event) noexcept;

/// A text as a JSON string, with its quotes.
std::string json_text(std::string_view text);

}  // namespace fpt
