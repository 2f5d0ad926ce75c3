// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "base/per_thread.hpp"

namespace fpt {
namespace {

struct Counted {
  static inline std::atomic<int> alive{0};
  int value = 0;
  Counted() { ++alive; }
  ~Counted() { --alive; }
};

TEST(PerThread, HasAnObjectForEachThreadThatAsks) {
  EXPECT_EQ(PerThread<Counted>::find(), nullptr);
  PerThread<Counted>::get().value = 1;
  EXPECT_EQ(PerThread<Counted>::find()->value, 1);
  std::thread([] {
    EXPECT_EQ(PerThread<Counted>::find(), nullptr);
    EXPECT_EQ(PerThread<Counted>::get().value, 0);
    EXPECT_EQ(Counted::alive, 2);
  }).join();
  EXPECT_EQ(Counted::alive, 1) << "that of a thread goes with it";
  EXPECT_EQ(PerThread<Counted>::get().value, 1);
}

struct Late {
  ~Late() { PerThread<Counted>::get().value = 7; }
};

TEST(PerThread, IsThereAgainForWhatAThreadDoesAtItsEnd) {
  const int before = Counted::alive;
  std::thread([] {
    static thread_local Late late;
    (void)late;
    PerThread<Counted>::get();
  }).join();
  EXPECT_EQ(Counted::alive, before);
}

}  // namespace
}  // namespace fpt
