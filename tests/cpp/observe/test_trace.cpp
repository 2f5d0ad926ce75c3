// SPDX-License-Identifier: MIT
/// Texts of the trace and its file when the disk is full. Which events are in it is in tests/diagnosis/test_trace.py.
#include <sys/resource.h>

#include <csignal>

#include "observe/trace.hpp"
#include "support.hpp"

namespace fpt {
namespace {

TEST(JsonText, EscapesWhatJsonWants) {
  EXPECT_EQ(json_text("plain"), "\"plain\"");
  EXPECT_EQ(json_text("a \"b\" \\ c"), R"("a \"b\" \\ c")");
  EXPECT_EQ(json_text(std::string_view("a\nb\0c", 5)), R"("a\u000ab\u0000c")");
  EXPECT_EQ(json_text("caf\xc3\xa9 \xe9"), "\"caf\xc3\xa9 \\\\xe9\"") << "UTF-8 as it is, other bytes as in Python";
}

/// In a process of its own: a trace into a file that may not grow beyond 1,000 bytes.
[[noreturn]] void trace_until_the_disk_is_full(const std::string& file) {
  std::signal(SIGXFSZ, SIG_IGN);
  const rlimit limit{1000, 1000};
  setrlimit(RLIMIT_FSIZE, &limit);
  set_warning_handler(
      [](const char* text, int64_t length) { fwrite(text, 1, static_cast<std::size_t>(length), stderr); });
  start_trace(file);
  if (!traces()) std::exit(1);
  for (int i = 0; i < 50; ++i) trace({"net.f", "crossing", 1000, 2500, ""});
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
