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
  Segment other(Descriptor(dup(memory.descriptor())));
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

/// Run in a process of its own, which has so many bytes of addresses left; whether it says yes.
template <class Body>
bool holds_with_addresses(rlim_t bytes, const Body& body) {
  const pid_t child = fork();
  if (child == 0) {
    rlim_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const rlim_t most = pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + bytes;
    const rlimit limit{most, most};
    setrlimit(RLIMIT_AS, &limit);
    try {
      _exit(body() ? 0 : 1);
    } catch (...) {
      _exit(2);
    }
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/// Whether a body fails for want of addresses.
template <class Body>
bool lacks_addresses(const Body& body) {
  try {
    body();
    return false;
  } catch (const Error& error) {
    return error.status() == FPT_ERR_MEMORY && error.text().find("ulimit -v") != std::string::npos;
  }
}

TEST(Segment, RefusesDamagedTexts) {
  Segment memory;
  SegmentWriter(memory, 0).integer(-5);
  SegmentReader reader(memory, 0);
  EXPECT_THROW(reader.text(), Error);
}

TEST(Segment, IsSmallerWhereAddressesAreLimited) {
  EXPECT_TRUE(holds_with_addresses(1 << 28, [] {
    Segment memory;
    memory.reserve(1 << 20);
    return lacks_addresses([&] { memory.reserve(int64_t{1} << 35); });
  }));
}

TEST(Segment, RefusesWhatTheOtherProcessHasMadeLargerThanItsAddresses) {
  Segment large;
  EXPECT_TRUE(holds_with_addresses(1 << 28, [&] {
    Segment small(Descriptor(dup(large.descriptor())));
    constexpr int64_t bytes = int64_t{1} << 30;
    SegmentWriter(large, 0).block(bytes);
    return lacks_addresses([&] { SegmentReader(small, 0).block(bytes); });
  }));
}

}  // namespace
}  // namespace fpt
