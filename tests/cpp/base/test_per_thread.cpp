// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

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

struct WithoutKey {
  int value = 3;
};

TEST(PerThread, TakesNoKeyOfOthersWhereNoneIsLeft) {
  std::vector<pthread_key_t> keys;
  for (pthread_key_t key = 0; pthread_key_create(&key, nullptr) == 0;) keys.push_back(key);
  const void* others = pthread_getspecific(0);
  std::thread([] {
    const void* before = pthread_getspecific(0);
    EXPECT_EQ(PerThread<WithoutKey>::get().value, 3);
    EXPECT_EQ(pthread_getspecific(0), before);
  }).join();
  EXPECT_EQ(pthread_getspecific(0), others);
  for (const pthread_key_t key : keys) pthread_key_delete(key);
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
