// SPDX-License-Identifier: MIT
/// One line of the log. Which events have one is in tests/diagnosis/test_log.py.
#include <cerrno>

#include "observe/log.hpp"
#include "support.hpp"

namespace fpt {
namespace {

/// In a process of its own, because a log that has begun goes on: write `text`, to standard error unless a file is
/// given, and end with the number of the error that was there before.
[[noreturn]] void log_and_exit(const char* level, LogLevel wanted, const char* text, const char* file = "") {
  setenv("FTN_PYTORCH_LOG", level, 1);
  setenv("FTN_PYTORCH_LOG_FILE", file, 1);
  start_log();
  errno = EDOM;
  log(wanted, text);
  std::exit(errno);
}

const auto unchanged_errno = testing::ExitedWithCode(EDOM);

TEST(LogDeathTest, HasOneLineForAnEventAndIndentsTheRest) {
  EXPECT_EXIT(log_and_exit("info", LogLevel::info, "first\nsecond"), unchanged_errno,
              " rank 0 thread [0-9]+ info first\n    second\n");
}

TEST(LogDeathTest, OnAFullDiskChangesNothingForItsCaller) {
  EXPECT_EXIT(
      {
        set_warning_handler(
            [](const char* text, int64_t length) { fwrite(text, 1, static_cast<std::size_t>(length), stderr); });
        setenv("FTN_PYTORCH_LOG", "info", 1);
        setenv("FTN_PYTORCH_LOG_FILE", "/dev/full", 1);
        start_log();
        log(LogLevel::info, "one");
        log_and_exit("info", LogLevel::info, "two", "/dev/full");
      },
      unchanged_errno, "^FTN_PYTORCH_LOG_FILE: /dev/full [^:]*No space left[^:]*are missing$")
      << "told once";
}

TEST(LogDeathTest, EscapesWhatIsNoUtf8) {
  EXPECT_EXIT(log_and_exit("debug", LogLevel::debug, "caf\xe9"), unchanged_errno, " debug caf\\\\xe9\n");
}

TEST(LogDeathTest, LeavesOutWhatIsNotWanted) {
  EXPECT_EXIT(log_and_exit("info", LogLevel::debug, "detail"), unchanged_errno, "^$");
  EXPECT_EXIT(log_and_exit("off", LogLevel::info, "event"), unchanged_errno, "^$");
  EXPECT_EXIT(log_and_exit("debug", LogLevel::off, "nothing"), unchanged_errno, "^$");
}

}  // namespace
}  // namespace fpt
