// SPDX-License-Identifier: MIT
/// The log that FTN_PYTORCH_LOG asks for: a line per event, to standard error or to FTN_PYTORCH_LOG_FILE.
#pragma once

#include <string_view>

#include "ftn_pytorch.h"

namespace fpt {

enum class LogLevel { off, info, debug };

/// Read the variables, once; an invalid value gives a warning. Before that the log is off.
void start_log();

FPT_API LogLevel log_level() noexcept;
inline bool logs(LogLevel level) noexcept { return log_level() >= level; }

/// Write "date time rank level text" in one piece, so that lines of several threads and ranks do not mix; nothing if
/// the level is not wanted. Lines of `text` after the first are indented. Never throws, keeps errno.
FPT_API void log(LogLevel level, std::string_view text) noexcept;

/// Write all of it; false, with errno, where that cannot be done.
[[nodiscard]] bool write_whole(int descriptor, std::string_view text) noexcept;

}  // namespace fpt
