// SPDX-License-Identifier: MIT
#include <set>
#include <thread>

#include "base/handle.hpp"
#include "support.hpp"

namespace fpt {
namespace {

using Things = HandleTable<int, HandleKind::tensor>;
using Others = HandleTable<int, HandleKind::wrap>;

int64_t add(Things& things, int value) { return things.insert(std::make_unique<int>(value)); }

test::Outcome looked_up(const Things& things, int64_t handle) {
  return test::outcome_of([&] { things.at(handle); });
}

constexpr int64_t slot_bits = 0xFFFFFFFF;
constexpr int64_t one_generation = int64_t{1} << 32;

TEST(Handle, NamesItsObject) {
  Things things("a thing", "make");
  const int64_t one = add(things, 1), two = add(things, 2);
  EXPECT_EQ(things.at(one), 1);
  EXPECT_EQ(things.at(two), 2);
  EXPECT_NE(one, two);
}

TEST(Handle, IsNeverZeroOrNegative) {
  HandleTable<int, HandleKind::copy> highest_kind("a copy", "copy");
  EXPECT_GT(highest_kind.insert(std::make_unique<int>(1)), 0);
}

TEST(Handle, ZeroWasNeverGivenAnObject) {
  Things things("a thing", "make");
  EXPECT_FAILS(looked_up(things, 0), FPT_ERR_NOT_LOADED, "this is not a thing yet: call make first");
  EXPECT_EQ(things.find(0), nullptr);
}

TEST(Handle, OfAFreedObjectIsStale) {
  Things things("a thing", "make");
  const int64_t handle = add(things, 1);
  EXPECT_EQ(*things.remove(handle), 1);
  EXPECT_FAILS(looked_up(things, handle), FPT_ERR_FREED, "this was a thing and has been freed");
  EXPECT_EQ(things.find(handle), nullptr);
}

TEST(Handle, OfAnotherKindIsRefused) {
  Things things("a thing", "make");
  Others others("a list", "create");
  add(things, 1);
  const int64_t list = others.insert(std::make_unique<int>(2));
  EXPECT_FAILS(looked_up(things, list), FPT_ERR_ARGUMENT, "not that of a thing");
  EXPECT_EQ(things.remove(list), nullptr);
  EXPECT_EQ(others.at(list), 2);
}

TEST(Handle, KeepsTheReasonOfAnEndUntilItsPlaceIsUsedAgain) {
  Things things("a thing", "make");
  auto reason = std::make_shared<const std::string>("of last year");
  const std::weak_ptr<const std::string> kept = reason;
  const int64_t handle = add(things, 1);
  things.remove(handle, std::move(reason));
  EXPECT_FAILS(looked_up(things, handle), FPT_ERR_FREED, "this was a thing of last year");
  for (uint32_t i = 0; i < Things::chunk_size; ++i) things.remove(add(things, 2));
  EXPECT_FAILS(looked_up(things, handle), FPT_ERR_FREED, "has been freed");
  EXPECT_TRUE(kept.expired());
}

TEST(Handle, TooManyAreRefused) {
  Things things("a thing", "make");
  EXPECT_EQ(things.limit_to(2), Things::max_chunks);
  const int64_t first = add(things, 1);
  for (uint32_t i = 1; i < 2 * Things::chunk_size; ++i) add(things, 2);
  EXPECT_FAILS(test::outcome_of([&] { add(things, 3); }), FPT_ERR_MEMORY, "more than 2048 handles");
  EXPECT_EQ(*things.remove(first), 1);
  EXPECT_EQ(things.at(add(things, 4)), 4) << "there is room again";
}

TEST(Handle, MadeUpValuesNameNothing) {
  Things things("a thing", "make");
  const int64_t handle = add(things, 1);
  for (const int64_t wrong : {int64_t{-1}, int64_t{1}, handle + 1, handle | slot_bits, handle + one_generation,
                              handle - one_generation, INT64_MIN, INT64_MAX}) {
    EXPECT_EQ(things.find(wrong), nullptr) << wrong;
    EXPECT_EQ(things.remove(wrong), nullptr) << wrong;
  }
  EXPECT_EQ(things.at(handle), 1);
}

TEST(Handle, FreeingTwiceDoesNothing) {
  Things things("a thing", "make");
  const int64_t handle = add(things, 1);
  EXPECT_NE(things.remove(handle), nullptr);
  EXPECT_EQ(things.remove(handle), nullptr);
  const int64_t next = add(things, 2);
  EXPECT_EQ(things.remove(handle), nullptr);
  EXPECT_EQ(things.at(next), 2);
}

TEST(Handle, StaysStaleWhenItsSlotIsUsedAgain) {
  Things things("a thing", "make");
  const int64_t first = add(things, 1);
  things.remove(first);
  int64_t again = add(things, 2);
  for (int i = 0; i < 100000 && (again & slot_bits) != (first & slot_bits); ++i) {
    things.remove(again);
    again = add(things, 2);
  }
  ASSERT_EQ(again & slot_bits, first & slot_bits) << "the slot never came back";
  EXPECT_NE(again, first);
  EXPECT_EQ(things.find(first), nullptr);
  EXPECT_EQ(things.at(again), 2);
}

TEST(Handle, TheSlotFreedLongestAgoIsUsedNext) {
  Things things("a thing", "make");
  const int64_t one = add(things, 1), two = add(things, 2);
  things.remove(two);
  things.remove(one);
  const int64_t next = add(things, 3);
  EXPECT_NE(next & slot_bits, one & slot_bits);
  EXPECT_NE(next & slot_bits, two & slot_bits);
}

TEST(Handle, TheGenerationFitsIn28BitsAndLeavesTheKindAlone) {
  Things things("a thing", "make");
  for (int i = 0; i < 5000; ++i) {
    const int64_t handle = add(things, i);
    ASSERT_EQ(handle >> 60, static_cast<int64_t>(HandleKind::tensor));
    ASSERT_GE(handle >> 32 & 0xFFFFFFF, 1);
    things.remove(handle);
  }
}

TEST(Handle, ThousandsLiveSideBySide) {
  Things things("a thing", "make");
  std::vector<int64_t> handles;
  for (int i = 0; i < 10000; ++i) handles.push_back(add(things, i));
  EXPECT_EQ(std::set<int64_t>(handles.begin(), handles.end()).size(), handles.size());
  for (int i = 0; i < 10000; ++i) ASSERT_EQ(things.at(handles[static_cast<std::size_t>(i)]), i);
  for (std::size_t i = 0; i < handles.size(); i += 2) things.remove(handles[i]);
  for (std::size_t i = 0; i < handles.size(); ++i) {
    if (i % 2 == 0)
      ASSERT_EQ(things.find(handles[i]), nullptr);
    else
      ASSERT_EQ(things.at(handles[i]), static_cast<int>(i));
  }
}

TEST(Handle, ManyThreadsInsertLookUpAndRemove) {
  Things things("a thing", "make");
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      std::vector<int64_t> mine;
      for (int i = 0; i < 2000; ++i) {
        mine.push_back(add(things, t * 10000 + i));
        if (*things.find(mine.back()) != t * 10000 + i) ++wrong;
        if (i % 3 == 0) {
          const int64_t old = mine[mine.size() / 2];
          things.remove(old);
          if (things.find(old)) ++wrong;
          mine.erase(mine.begin() + static_cast<std::ptrdiff_t>(mine.size() / 2));
        }
      }
      for (const int64_t handle : mine)
        if (things.at(handle) / 10000 != t) ++wrong;
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

/// Counts how many are alive.
struct CountedThing {
  explicit CountedThing(int& alive) : alive_(alive) { ++alive_; }
  ~CountedThing() { --alive_; }
  int& alive_;
};
using Counteds = HandleTable<CountedThing, HandleKind::module>;

TEST(HandleUse, KeepsAnObjectUntilTheLastOneHasEnded) {
  Counteds things("a thing", "make");
  int alive = 0;
  const int64_t handle = things.insert(std::make_unique<CountedThing>(alive));
  {
    const Counteds::Use one(things, handle);
    {
      const Counteds::Use two(things, handle);
      things.retire(handle);
      EXPECT_EQ(alive, 1);
      EXPECT_EQ(things.find(handle), nullptr) << "nobody can begin to use it any more";
      EXPECT_FAILS(test::outcome_of([&] { Counteds::Use(things, handle); }), FPT_ERR_FREED, "has been freed");
      things.retire(handle);
    }
    EXPECT_EQ(alive, 1);
    EXPECT_EQ(&one->alive_, &alive);
  }
  EXPECT_EQ(alive, 0);
}

TEST(HandleUse, OfARetiredObjectThatNobodyUsesEndsAtOnce) {
  Counteds things("a thing", "make");
  int alive = 0;
  const int64_t handle = things.insert(std::make_unique<CountedThing>(alive));
  {
    const Counteds::Use use(things, handle);
  }
  EXPECT_EQ(alive, 1);
  things.retire(handle);
  EXPECT_EQ(alive, 0);
  const int64_t next = things.insert(std::make_unique<CountedThing>(alive));
  EXPECT_NE(next, handle);
  things.retire(handle);
  EXPECT_EQ(alive, 1) << "a stale handle does nothing";
  things.retire(next);
}

TEST(HandleUse, SaysWhatIsWrongWithAHandle) {
  Counteds things("a thing", "make");
  int alive = 0;
  const int64_t handle = things.insert(std::make_unique<CountedThing>(alive));
  const auto used = [&](int64_t wrong) { return test::outcome_of([&] { Counteds::Use(things, wrong); }); };
  EXPECT_FAILS(used(0), FPT_ERR_NOT_LOADED, "call make first");
  EXPECT_FAILS(used(int64_t{1} << 60), FPT_ERR_ARGUMENT, "not that of a thing");
  EXPECT_FAILS(used(handle + 1), FPT_ERR_FREED, "freed") << "a slot in which nothing ever was";
  EXPECT_FAILS(used(handle + one_generation), FPT_ERR_FREED, "freed");
  EXPECT_FAILS(used(handle | slot_bits), FPT_ERR_FREED, "freed");
  EXPECT_OK(used(handle));
  things.retire(handle);
}

}  // namespace
}  // namespace fpt
