// SPDX-License-Identifier: MIT
/// The numbers of the table; which calls get into it is in tests/diagnosis/test_profile.py.
#include <thread>

#include "observe/profile.hpp"
#include "support.hpp"

namespace fpt {
namespace {

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
  EXPECT_EQ(profile_table(1000), "");
  add_to_profile("net.f", {3'000, 1'000}, false);
  add_to_profile("net.f", {5'000, 4'000}, true);
  add_to_profile("direct.g", {20'000, -1}, false);
  const std::string table = profile_table(100'000);
  EXPECT_EQ(row(table, "net.f"),
            (Columns{"2", "1", "4.00", "5.00", "8.00%", "2.50", "4.00", "5.00%", "1.50", "2.00", "3.00%"}));
  EXPECT_EQ(row(table, "direct.g"), (Columns{"1", "0", "20.00", "20.00", "20.00%", "-", "-", "-", "-", "-", "-"}))
      << "no Python took part";
  EXPECT_LT(table.find("direct.g"), table.find("net.f")) << "longest first";
  EXPECT_EQ(row(profile_table(0), "direct.g")[4], "0.00%");

  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([] {
      for (int call = 0; call < 500; ++call) add_to_profile("net.h", {1, 1}, false);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(row(profile_table(1), "net.h")[0], "2000");
}

}  // namespace
}  // namespace fpt
