// SPDX-License-Identifier: MIT
/// Failures and warnings: one exception type, one text per thread. Knows nothing of Python.
#pragma once

#include <cstdint>
#include <exception>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/plain.hpp"
#include "ftn_pytorch.h"

namespace fpt {

/// A failure that the caller is told of: a status of the C interface and the text that goes with it.
class FPT_API Error : public std::exception {
 public:
  Error(fpt_status status, std::string text) : status_(status), text_(std::move(text)) {}
  fpt_status status() const noexcept { return status_; }
  const char* what() const noexcept override { return text_.c_str(); }
  const std::string& text() const noexcept { return text_; }

 private:
  fpt_status status_;
  std::string text_;
};

/// A part of a text, written as by an output stream in C's locale. Making such a stream takes a microsecond, so only
/// what needs one has it.
template <class Part>
void append(std::string& text, const Part& part) {
  if constexpr (std::is_convertible_v<const Part&, std::string_view>) {
    text += std::string_view(part);
  } else if constexpr (std::is_same_v<Part, char>) {
    text += part;
  } else if constexpr (std::is_integral_v<Part> && sizeof(Part) > 1) {
    text += std::to_string(part);
  } else {
    Plain<std::ostringstream> stream;
    stream << part;
    text += stream.str();
  }
}

/// All parts written one after the other.
template <class... Parts>
std::string concat(const Parts&... parts) {
  std::string text;
  (append(text, parts), ...);
  return text;
}

template <class... Parts>
[[noreturn]] void fail(fpt_status status, const Parts&... parts) {
  throw Error(status, concat(parts...));
}

/// Keep `text` as the last failure of this thread; returns `status`. Never throws: without memory the text is lost.
fpt_status remember_error(fpt_status status, std::string_view text) noexcept;

/// Text of the last failure of this thread.
FPT_API const std::string& last_error() noexcept;

/// "FTN_PYTORCH_ERR_SHAPE" for FPT_ERR_SHAPE.
FPT_API const char* status_name(fpt_status status) noexcept;

/// Inverse of status_name without its prefix ("SHAPE"); FPT_ERR_INTERNAL for a name that is none.
FPT_API fpt_status status_of_name(const std::string& name) noexcept;

/// What is no UTF-8 (names that a source in Latin-1 gives to its arguments, say) escaped as in Python: "\\xe9".
FPT_API std::string as_utf8(std::string_view text);

using WarningHandler = void (*)(const char* text, int64_t length);

/// Replace the receiver of warnings and hand it those that were kept so far.
void set_warning_handler(WarningHandler handler);

/// Send a warning to the handler, or keep it until there is one.
FPT_API void warn(const std::string& words);

/// Warnings of this thread are sent when the outermost of these ends. Around what others wait for, since a handler may
/// wait for them: one of a Python program takes the interpreter lock.
class FPT_API WarningsLater {
 public:
  WarningsLater() noexcept;
  ~WarningsLater();
  WarningsLater(const WarningsLater&) = delete;
  WarningsLater& operator=(const WarningsLater&) = delete;

 private:
  std::vector<std::string> texts_;
  WarningsLater* const outer_;
  friend void warn(const std::string& words);
};

}  // namespace fpt
