// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <string>

#include "base/error.hpp"
#include "node/segment.hpp"

namespace fpt {
namespace {

TEST(Segment, HoldsWhatIsWrittenInItsOrder) {
  Segment memory;
  SegmentWriter writer(memory, 0);
  writer.integer(-7);
  writer.text("abc");
  writer.text("");
  writer.real(0.1);
  char* block = writer.block(3);
  std::memcpy(block, "xyz", 3);
  writer.integer(8);
  SegmentReader reader(memory, 0);
  EXPECT_EQ(reader.integer(), -7);
  EXPECT_EQ(reader.text(), "abc");
  EXPECT_EQ(reader.text(), "");
  EXPECT_EQ(reader.real(), 0.1);
  EXPECT_EQ(reader.block(3), block);
  EXPECT_EQ(reader.integer(), 8);
  EXPECT_EQ(reader.end(), writer.end());
}

TEST(Segment, GivesArraysOfTheSameSizesTheSamePlaces) {
  Segment memory;
  const auto places = [&](const std::string& text) {
    SegmentWriter writer(memory, 0);
    writer.text(text);
    char* first = writer.block(100);
    return std::pair(first, writer.block(8));
  };
  const auto before = places("a text");
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(before.first) % 64, 0u);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(before.second) % 64, 0u);
  EXPECT_EQ(before, places("a word"));
}

TEST(Segment, GrowsWithoutMovingAndIsSeenByTheOtherProcess) {
  Segment memory;
  Segment other(dup(memory.descriptor()));
  char* begin = memory.at(0);
  constexpr int64_t large = 5 << 20;
  SegmentWriter writer(memory, 0);
  std::memset(writer.block(large), 3, large);
  EXPECT_EQ(memory.at(0), begin);
  SegmentReader reader(other, 0);
  EXPECT_EQ(reader.block(large)[large - 1], 3);
  other.reserve(large + (1 << 20));
  memory.reserve(large + (1 << 20));
  EXPECT_EQ(*memory.at(large + 1), 0);
}

TEST(Segment, RefusesWhatNoMemoryHolds) {
  Segment memory;
  SegmentWriter writer(memory, 0);
  try {
    writer.block(int64_t{1} << 60);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), FPT_ERR_MEMORY);
  }
}

TEST(Segment, RefusesDamagedTexts) {
  Segment memory;
  SegmentWriter(memory, 0).integer(-5);
  SegmentReader reader(memory, 0);
  EXPECT_THROW(reader.text(), Error);
}

TEST(Segment, IsSmallerWhereAddressesAreLimited) {
  const pid_t child = fork();
  if (child == 0) {
    rlim_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const rlim_t most = pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + (1 << 28);
    const rlimit limit{most, most};
    setrlimit(RLIMIT_AS, &limit);
    try {
      Segment memory;
      memory.reserve(1 << 20);
      try {
        memory.reserve(int64_t{1} << 35);
      } catch (const Error& error) {
        _exit(error.text().find("ulimit -v") != std::string::npos ? 0 : 1);
      }
    } catch (...) {
    }
    _exit(2);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace fpt
