// SPDX-License-Identifier: MIT
/// Memory that the ranks of a GPU share with the process that owns it: who has asked, who has been answered, and then
/// the places of arrays. Knows nothing of Python.
///
/// Who waits looks there for a while before it sleeps in its pipe: to wake 16 ranks takes longer than to compute for
/// them, and who is not asleep need not be woken.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "node/channel.hpp"
#include "node/segment.hpp"

namespace fpt {

/// What a rank and the owner tell each other, on a cache line of its own.
struct alignas(64) RankLine {
  std::atomic<int64_t> asked{0}, answered{0};  ///< numbers of calls
  std::atomic<int32_t> sleeps{0};              ///< the rank is in its pipe, or on the way there
};
struct alignas(64) OwnerLine {
  std::atomic<int32_t> sleeps{0};
};

class Board {
 public:
  /// New memory, for so many ranks. FPT_ERR_MEMORY.
  explicit Board(int64_t ranks);
  /// That of the owner.
  explicit Board(Descriptor memory);

  Segment& memory() noexcept { return memory_; }
  OwnerLine& owner() const noexcept { return *reinterpret_cast<OwnerLine*>(memory_.at(0)); }
  RankLine& rank(int64_t number) const noexcept {
    return *reinterpret_cast<RankLine*>(
        memory_.at(static_cast<int64_t>(sizeof(OwnerLine)) + number * static_cast<int64_t>(sizeof(RankLine))));
  }

 private:
  Segment memory_;
};

/// Gives way to other processes again and again, for a while.
class Patience {
 public:
  explicit Patience(std::chrono::microseconds limit) : end_(std::chrono::steady_clock::now() + limit) {}
  /// False when the time is over.
  bool has_waited() const noexcept;

 private:
  std::chrono::steady_clock::time_point end_;
};

/// Ask the owner. The request is in the memory of the channel.
void ask_owner(Board& board, int64_t rank, Channel& channel) noexcept;
/// Until the owner has answered; false if it is gone.
[[nodiscard]] bool wait_for_owner(Board& board, int64_t rank, Channel& channel) noexcept;
/// Tell a rank that its answer is in the memory of the channel.
void tell_rank(Board& board, int64_t rank, Channel& channel) noexcept;

}  // namespace fpt
