// SPDX-License-Identifier: MIT
#include "observe/log.hpp"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <ctime>

#include "base/error.hpp"
#include "base/rank.hpp"
#include "base/switches.hpp"
#include "observe/choice.hpp"

namespace fpt {
namespace {

std::atomic<LogLevel> level_{LogLevel::off};
std::atomic<int64_t> left_{no_limit};  // bytes that may be written
int file_ = STDERR_FILENO;

/// Level that the variable asks for.
LogLevel wanted_level() {
  const std::string_view value = variable_value("FTN_PYTORCH_LOG");
  if (value == "debug") return LogLevel::debug;
  if (value == "info") return LogLevel::info;
  if (!value.empty() && value != "0" && value != "off")
    warn_of_job(concat("FTN_PYTORCH_LOG is \"", value, "\": it must be \"info\" or \"debug\", so nothing is logged"));
  return LogLevel::off;
}

/// "2026-03-01T12:00:00.123456", local time.
std::string now() {
  const auto time = std::chrono::system_clock::now();
  const std::time_t seconds = std::chrono::system_clock::to_time_t(time);
  const auto micro = std::chrono::duration_cast<std::chrono::microseconds>(time.time_since_epoch()).count() % 1000000;
  std::tm parts{};
  localtime_r(&seconds, &parts);
  char day[32], text[48];
  std::strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%S", &parts);
  std::snprintf(text, sizeof text, "%s.%06d", day, static_cast<int>(micro));
  return text;
}

std::string indented(std::string_view text) {
  std::string result;
  for (const char c : text) {
    result += c;
    if (c == '\n') result += "    ";
  }
  return result;
}

std::string line_of(LogLevel level, std::string_view text) {
  return concat(now(), " rank ", rank().number, " thread ", syscall(SYS_gettid),
                level == LogLevel::debug ? " debug " : " info ", indented(as_utf8(text)), "\n");
}

/// Once: later lines may fit again, where somebody has made room.
void tell_of_lost_line() {
  static std::atomic<bool> told{false};
  const int reason = errno;
  if (file_ != STDERR_FILENO && !told.exchange(true))
    warn(concat("FTN_PYTORCH_LOG_FILE: ", variable_value("FTN_PYTORCH_LOG_FILE"), " could not be written (",
                std::strerror(reason), "), so lines of the log are missing"));
}

}  // namespace

void start_log() {
  const LogLevel wanted = wanted_level();
  if (wanted == LogLevel::off) return;
  const std::string name(variable_value("FTN_PYTORCH_LOG_FILE"));
  if (!name.empty()) {
    // ranks may share a file: each line is appended in one piece
    const std::string path = with_rank(name);
    const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (file < 0)
      return warn(concat("FTN_PYTORCH_LOG_FILE: ", path, " cannot be written (", std::strerror(errno),
                         "), so nothing is logged"));
    file_ = file;
  }
  left_.store(size_limit());
  level_.store(wanted);
}

bool write_whole(int descriptor, std::string_view text) noexcept {
  while (!text.empty()) {
    const ssize_t count = write(descriptor, text.data(), text.size());
    if (count <= 0 && errno != EINTR) return false;
    if (count > 0) text.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

LogLevel log_level() noexcept { return level_.load(std::memory_order_relaxed); }

void log(LogLevel level, std::string_view text) noexcept {
  if (level == LogLevel::off || !logs(level)) return;
  const int kept = errno;
  try {
    std::string line = line_of(level, text);
    const int64_t left = left_.fetch_sub(static_cast<int64_t>(line.size()));
    if (left < static_cast<int64_t>(line.size())) {
      level_.store(LogLevel::off);
      line = left > 0 ? line_of(LogLevel::info, end_at_limit("log")) : "";  // other threads may be here, too
    }
    if (!write_whole(file_, line)) tell_of_lost_line();
  } catch (...) {
  }
  errno = kept;
}

}  // namespace fpt
