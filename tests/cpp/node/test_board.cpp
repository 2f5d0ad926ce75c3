// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "node/board.hpp"

namespace fpt {
namespace {

constexpr int64_t rank = 1;

/// A process that answers calls of a rank after so many microseconds, and sleeps until it is asked.
pid_t owner(Board& board, Channel& channel, int calls, useconds_t takes) {
  const pid_t child = fork();
  if (child != 0) {
    channel.forget_other_end();
    return child;
  }
  const std::vector<int> ends = channel.other_end();
  Channel own(Descriptor(dup(ends[0])), Descriptor(dup(ends[1])), Descriptor(dup(ends[2])));
  channel.end();  // of this copy
  channel.forget_other_end();
  Board seen(Descriptor(dup(board.memory().descriptor())));
  for (int64_t call = 1; call <= calls; ++call) {
    seen.owner().sleeps.store(1);
    while (seen.rank(rank).asked.load() < call)
      if (!own.wait()) _exit(1);
    seen.owner().sleeps.store(0);
    usleep(takes);
    tell_rank(seen, rank, own);
  }
  _exit(0);
}

class BoardTest : public testing::TestWithParam<useconds_t> {};

TEST_P(BoardTest, CarriesCallsAndTellsTheEnd) {
  Board board(2);
  Channel channel;
  const pid_t child = owner(board, channel, 50, GetParam());
  for (int call = 1; call <= 50; ++call) {
    ask_owner(board, rank, channel);
    ASSERT_TRUE(wait_for_owner(board, rank, channel));
    EXPECT_EQ(board.rank(rank).answered.load(), call);
    if (call % 10 == 0) usleep(2000);  // so that the owner sleeps
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(board.rank(0).asked.load(), 0) << "of another rank";
  ask_owner(board, rank, channel);
  EXPECT_FALSE(wait_for_owner(board, rank, channel)) << "it is gone";
}

// At once, about when the rank goes to sleep, and after that
INSTANTIATE_TEST_SUITE_P(Times, BoardTest, testing::Values(0, 950, 1000, 3000));

TEST(Patience, EndsAfterItsTime) {
  const auto begin = std::chrono::steady_clock::now();
  for (const Patience patience(std::chrono::microseconds(500)); patience.has_waited();) {
  }
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::microseconds(500));
}

}  // namespace
}  // namespace fpt
