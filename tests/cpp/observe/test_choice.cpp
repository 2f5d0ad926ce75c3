// SPDX-License-Identifier: MIT
/// Which ranks write, how much, and how log and trace end at their limits. Whole programs:
/// tests/diagnosis/test_log_ranks.py.
#include "observe/choice.hpp"
#include "observe/events.hpp"
#include "observe/log.hpp"
#include "support.hpp"

namespace fpt {
namespace {

TEST(Choice, ListsHaveNumbersAndRanges) {
  for (const int64_t number : {0, 100, 102, 103}) EXPECT_EQ(is_in_list("0,100-103", number), true) << number;
  for (const int64_t number : {1, 99, 104}) EXPECT_EQ(is_in_list("0,100-103", number), false) << number;
  EXPECT_EQ(is_in_list("7", 7), true);
  EXPECT_EQ(is_in_list("5-5,2", 2), true);
  for (const char* wrong : {"", ",", "1,", "-3", "3-", "5-4", "a", "1 ", "0x1", "1-2-3", "99999999999999999999"})
    EXPECT_FALSE(is_in_list(wrong, 1)) << wrong;
}

TEST(Choice, SizesHaveUnits) {
  EXPECT_EQ(bytes_of("1000"), 1000);
  EXPECT_EQ(bytes_of("64K"), 65536);
  EXPECT_EQ(bytes_of("100M"), 104857600);
  EXPECT_EQ(bytes_of("2G"), 2147483648);
  EXPECT_EQ(bytes_of("0"), no_limit);
  for (const char* wrong : {"", "M", "-1", "1.5G", "10k", "10 M", "10MB", "9999999999G"})
    EXPECT_FALSE(bytes_of(wrong)) << wrong;
}

void warn_to_standard_error() {
  set_warning_handler(
      [](const char* text, int64_t length) { fwrite(text, 1, static_cast<std::size_t>(length), stderr); });
}

/// In a process of its own, of 4 ranks: whether it writes.
[[noreturn]] void choose(const char* list, const char* rank, const char* limit = "") {
  setenv("PMI_SIZE", "4", 1);
  setenv("PMI_RANK", rank, 1);
  setenv("FTN_PYTORCH_LOG_RANKS", list, 1);
  setenv("FTN_PYTORCH_LOG_LIMIT", limit, 1);
  unsetenv("OMPI_COMM_WORLD_SIZE");
  warn_to_standard_error();
  read_choice();
  std::exit(writes_here() ? 1 : 0);
}

const auto writes = testing::ExitedWithCode(1), is_silent = testing::ExitedWithCode(0);

TEST(ChoiceDeathTest, RanksOfTheListWrite) {
  EXPECT_EXIT(choose("", "3"), writes, "^$");
  EXPECT_EXIT(choose("0,2-3", "3"), writes, "^$");
  EXPECT_EXIT(choose("0", "0"), writes, "^$");
  EXPECT_EXIT(choose("0,2-3", "1"), is_silent, "^$");
}

TEST(ChoiceDeathTest, AWrongValueIsToldByRank0WhichWritesAlone) {
  EXPECT_EXIT(choose("0;3", "0"), writes,
              "^FTN_PYTORCH_LOG_RANKS is \"0;3\": it must be ranks such as [^:]*alone writes$");
  EXPECT_EXIT(choose("0;3", "3"), is_silent, "^$");
  EXPECT_EXIT(choose("4-9", "0"), is_silent, "\"4-9\": this job has ranks 0 to 3, so nothing is written$");
  EXPECT_EXIT(choose("0", "0", "much"), writes, "^FTN_PYTORCH_LOG_LIMIT is \"much\": it must be a size such as");
}

/// In a process of its own: log and trace of many calls with a limit of 2,000 bytes each.
[[noreturn]] void write_much(const std::string& log_file, const std::string& trace_file) {
  setenv("FTN_PYTORCH_LOG_LIMIT", "2000", 1);
  setenv("FTN_PYTORCH_LOG", "debug", 1);
  setenv("FTN_PYTORCH_LOG_FILE", log_file.c_str(), 1);
  setenv("FTN_PYTORCH_TRACE", trace_file.c_str(), 1);
  warn_to_standard_error();
  read_choice();
  start_log();
  start_events();
  for (int i = 0; i < 100; ++i) {
    log(LogLevel::debug, "one of many");
    add_event({"net.f", "crossing", 1000, 2500});
  }
  std::exit(logs(LogLevel::info) || traces() ? 1 : 0);
}

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t found = 0;
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; ++at) ++found;
  return found;
}

TEST(ChoiceDeathTest, AtTheLimitLogAndTraceEndWithOneLine) {
  const test::Folder folder;
  const std::string log_file = (folder.path() / "log").string(), trace_file = (folder.path() / "trace").string();
  EXPECT_EXIT(write_much(log_file, trace_file), testing::ExitedWithCode(0), "^$");
  for (const std::string& path : {log_file, trace_file}) {
    std::ifstream file(path);
    const std::string content((std::istreambuf_iterator<char>(file)), {});
    EXPECT_GT(content.size(), 1500u) << path;
    EXPECT_LT(content.size(), 2500u) << path;
    EXPECT_EQ(count(content, "ends here: it has the size of FTN_PYTORCH_LOG_LIMIT, 2000"), 1u) << content;
    if (path == trace_file) EXPECT_EQ(content.substr(content.size() - 4), "}\n]\n");
  }
}

}  // namespace
}  // namespace fpt
