// SPDX-License-Identifier: MIT
/// Numbers of the table, texts of the trace, and its file when the disk is full. Which calls get into them is in
/// tests/diagnosis/test_profile.py and test_trace.py.
#include <sys/resource.h>

#include <csignal>
#include <thread>

#include "comma_locale.hpp"
#include "observe/events.hpp"
#include "support.hpp"

namespace fpt {
namespace {

TEST(JsonText, EscapesWhatJsonWants) {
  EXPECT_EQ(json_text("plain"), "\"plain\"");
  EXPECT_EQ(json_text("a \"b\" \\ c"), R"("a \"b\" \\ c")");
  EXPECT_EQ(json_text(std::string_view("a\nb\0c", 5)), R"("a\u000ab\u0000c")");
  EXPECT_EQ(json_text("caf\xc3\xa9 \xe9"), "\"caf\xc3\xa9 \\\\xe9\"") << "UTF-8 as it is, other bytes as in Python";
}

/// Columns of a row, without the bars.
std::vector<std::string> row(const std::string& table, const std::string& function) {
  std::istringstream lines(table);
  std::vector<std::string> columns;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string word;
    words >> word;
    if (word != function) continue;
    while (words >> word)
      if (word != "|") columns.push_back(word);
  }
  return columns;
}

// one case for the one table of the process
TEST(Profile, AddsUpCallsOfEachFunction) {
  using Columns = std::vector<std::string>;
  const test::CommaLocale comma;
  EXPECT_EQ(profile_table(1000), "");
  const test::Variable wanted("FTN_PYTORCH_PROFILE", "1");
  start_events();
  add_event({"net.f", "crossing", 1'000, 4'000, FPT_OK, 2'000, 3'000});
  add_event({"net.f", "crossing", 1'000, 6'500, FPT_ERR_SHAPE, 2'000, 6'000, 500});
  add_event({"direct.g", "crossing", 1'000, 21'000});
  const std::string table = profile_table(100'000);
  EXPECT_EQ(row(table, "net.f"),
            (Columns{"2", "1", "4.00", "5.00", "8.00%", "2.50", "4.00", "5.00%", "1.50", "2.00", "3.00%"}));
  EXPECT_EQ(row(table, "direct.g"), (Columns{"1", "0", "20.00", "20.00", "20.00%", "-", "-", "-", "-", "-", "-"}))
      << "no Python took part";
  EXPECT_LT(table.find("direct.g"), table.find("net.f")) << "longest first";
  EXPECT_EQ(row(profile_table(0), "direct.g")[4], "0.00%");

  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([] {
      for (int call = 0; call < 500; ++call) add_event({"net.h", "crossing", 1, 2});
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(row(profile_table(1), "net.h")[0], "2000");
}

/// In a process of its own: a trace into a file that may not grow beyond 1,000 bytes.
[[noreturn]] void trace_until_the_disk_is_full(const std::string& file) {
  std::signal(SIGXFSZ, SIG_IGN);
  const rlimit limit{1000, 1000};
  setrlimit(RLIMIT_FSIZE, &limit);
  set_warning_handler([](const char* text, int64_t length) {
    fwrite(text, 1, static_cast<std::size_t>(length), stderr);
    std::thread([] { add_event({"net.g", "crossing", 1, 2}); }).join();  // a handler may wait for other threads
  });
  setenv("FTN_PYTORCH_TRACE", file.c_str(), 1);
  setenv("FTN_PYTORCH_PROFILE", "1", 1);
  start_events();
  if (!traces()) std::exit(1);
  for (int i = 0; i < 50; ++i) add_event({"net.f", "crossing", 1000, 2500});
  std::exit(traces() ? 2 : 0);
}

TEST(TraceDeathTest, AFullDiskEndsTheTraceAndTheFileStaysWhole) {
  const test::Folder folder;
  const std::string path = (folder.path() / "trace.json").string();
  EXPECT_EXIT(trace_until_the_disk_is_full(path), testing::ExitedWithCode(0), "^FTN_PYTORCH_TRACE: [^:]*ends here$");
  std::ifstream file(path);
  const std::string content((std::istreambuf_iterator<char>(file)), {});
  ASSERT_GT(content.size(), 200u);
  EXPECT_EQ(content.substr(0, 2), "[\n");
  EXPECT_EQ(content.substr(content.size() - 5), "}}\n]\n");
  EXPECT_EQ(content.find(']'), content.size() - 2);
}

}  // namespace
}  // namespace fpt
