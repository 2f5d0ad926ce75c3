// SPDX-License-Identifier: MIT
#include "node/board.hpp"

#include <sched.h>

#include <utility>

namespace fpt {
namespace {

// Longer than most calls of small networks. Who waits longer loses little by the 50 us of its awakening.
constexpr std::chrono::microseconds looking{1000};

bool is_answered(const RankLine& line) noexcept {
  return line.answered.load() == line.asked.load(std::memory_order_relaxed);
}

}  // namespace

Board::Board(int64_t ranks) {
  memory_.reserve(static_cast<int64_t>(sizeof(OwnerLine)) + ranks * static_cast<int64_t>(sizeof(RankLine)));
}

Board::Board(Descriptor memory) : memory_(std::move(memory)) {}

bool Patience::has_waited() const noexcept {
  sched_yield();
  return std::chrono::steady_clock::now() < end_;
}

void ask_owner(Board& board, int64_t rank, Channel& channel) noexcept {
  board.rank(rank).asked.fetch_add(1);
  if (board.owner().sleeps.load() != 0) channel.tell();
}

bool wait_for_owner(Board& board, int64_t rank, Channel& channel) noexcept {
  RankLine& line = board.rank(rank);
  for (const Patience patience(looking);;) {
    if (is_answered(line)) return true;
    if (!patience.has_waited()) break;
  }
  line.sleeps.store(1);
  // who finds it 1 and makes it 0 is the one who acts: the owner tells, or this rank need not be told
  if (is_answered(line) && line.sleeps.exchange(0) == 1) return true;
  return channel.wait() && is_answered(line);
}

void tell_rank(Board& board, int64_t rank, Channel& channel) noexcept {
  RankLine& line = board.rank(rank);
  line.answered.store(line.asked.load());
  if (line.sleeps.exchange(0) == 1) channel.tell();
}

}  // namespace fpt
