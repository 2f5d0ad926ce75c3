// SPDX-License-Identifier: MIT
/// The parts without Python from many threads at once. With the preset tsan, ThreadSanitizer looks on.
///
/// FPT_RACES_ROUNDS  rounds of each thread, default 2000
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <vector>

#include "arrays/arg.hpp"
#include "arrays/copy.hpp"
#include "base/error.hpp"
#include "base/fpenv.hpp"
#include "base/handle.hpp"
#include "torch/dlpack.hpp"

namespace fpt {
namespace {

constexpr int threads = 6;

int rounds() {
  const char* text = std::getenv("FPT_RACES_ROUNDS");
  return text ? std::atoi(text) : 2000;
}

/// `body(thread, round)` in all threads at once; what it returns says whether all was well.
template <class Body>
void expect_well(Body body) {
  std::atomic<int> ready{0}, wrong{0};
  std::vector<std::thread> running;
  for (int t = 0; t < threads; ++t)
    running.emplace_back([&, t] {
      ++ready;
      while (ready < threads) std::this_thread::yield();
      for (int i = 0; i < rounds(); ++i)
        if (!body(t, i)) ++wrong;
    });
  for (std::thread& thread : running) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Races, HandlesAreFoundWhileOthersComeAndGo) {
  HandleTable<int, HandleKind::tensor> table("a number", "insert");
  const int64_t lasting = table.insert(std::make_unique<int>(42));
  expect_well([&](int t, int i) {
    const int64_t mine = table.insert(std::make_unique<int>(1000000 * t + i));
    const bool found = table.at(mine) == 1000000 * t + i && table.at(lasting) == 42;
    const bool removed = table.remove(mine) != nullptr;
    return found && removed && table.find(mine) == nullptr && table.remove(mine) == nullptr;
  });
}

TEST(Races, OneHandleIsRemovedByOneThreadOnly) {
  HandleTable<int, HandleKind::tensor> table("a number", "insert");
  std::vector<int64_t> handles(static_cast<std::size_t>(rounds()));
  for (int64_t& handle : handles) handle = table.insert(std::make_unique<int>(1));
  std::atomic<int> removed{0};
  expect_well([&](int, int i) {
    if (table.remove(handles[static_cast<std::size_t>(i)])) ++removed;
    return true;
  });
  EXPECT_EQ(removed, rounds());
}

TEST(Races, ObjectsInUseOutliveTheirHandles) {
  struct Thing {
    std::atomic<int> value{42};
    ~Thing() { value = -1; }
  };
  HandleTable<Thing, HandleKind::module> table("a thing", "insert");
  std::atomic<int64_t> current{table.insert(std::make_unique<Thing>())};
  expect_well([&](int t, int) {
    if (t == 0) {  // replaces it all the time
      table.retire(current.exchange(table.insert(std::make_unique<Thing>())));
      return true;
    }
    try {
      const decltype(table)::Use use(table, current);
      std::this_thread::yield();
      return use->value == 42;
    } catch (const Error& error) {
      return error.status() == FPT_ERR_FREED;
    }
  });
  table.retire(current);
}

TEST(Races, CopiesAndLongTextsAreDescribedEverywhere) {
  const std::string text(300, 'x');
  expect_well([&](int t, int i) {
    double x[4] = {1.0 * t, 2, 3, 1.0 * i};
    const int64_t extent = 4;
    fpt_arg copied, written;
    describe_array(copied, x, FPT_FLOAT64, 1, &extent, nullptr, FPT_COPY);
    x[0] = -1;
    const bool kept = static_cast<const double*>(copied.data)[0] == t;
    const bool claimed = i % 2 ? claim_copy(copied) != nullptr : (discard_copies({&copied, 1}), true);
    const std::string mine = text + std::to_string(i % 10);
    describe_text(written, mine.data(), static_cast<int64_t>(mine.size()), FPT_IN);
    return kept && claimed && text_of(written) == mine;
  });
}

TEST(Races, EachThreadHasItsOwnErrorAndAllShareTheWarnings) {
  static std::atomic<int> received{0};
  expect_well([&](int t, int i) {
    const std::string text = std::to_string(t) + " " + std::to_string(i) + " \xe9";
    remember_error(FPT_ERR_FILE, text);
    if (i % 50 == 0) set_warning_handler([](const char*, int64_t) { ++received; });
    warn(text);
    return last_error() == std::to_string(t) + " " + std::to_string(i) + " \\xe9";
  });
  set_warning_handler([](const char*, int64_t) {});
  EXPECT_EQ(received, threads * rounds());
  set_warning_handler(nullptr);
}

TEST(Races, ErrorsOfThreadsThatEndAreForgotten) {
  expect_well([](int, int i) {
    if (i % 100) return true;
    bool empty = false;
    std::thread([&] {
      empty = last_error().empty();
      remember_error(FPT_ERR_FILE, std::string(1000, 'x'));
    }).join();
    return empty;
  });
}

TEST(Races, SlotsAreTakenUnderALockAndReleasedFromAnyThread) {
  std::mutex interpreter_lock;  // which is held where slots are taken, and need not be where tensors die
  std::atomic<dlpack::Slot*> left_by_others[threads] = {};
  expect_well([&](int t, int i) {
    double x = i;
    Array array;
    array.data = &x;
    array.dtype = FPT_FLOAT64;
    dlpack::Slot* slot;
    {
      const std::lock_guard<std::mutex> lock(interpreter_lock);
      slot = dlpack::take_slot(array, i % 2 ? allocate(16) : nullptr);
    }
    const bool mine = slot->versioned.tensor.data == &x && slot->alive.load();
    slot = left_by_others[(t + i) % threads].exchange(slot);
    if (slot) slot->versioned.deleter(&slot->versioned);
    return mine;
  });
  for (auto& slot : left_by_others)
    if (slot.load()) dlpack::drop_slot(slot.load());
}

TEST(Races, TheFloatingPointStateIsThatOfTheThread) {
  expect_well([](int t, int) {
    const int mode = t % 2 ? FE_UPWARD : FE_DOWNWARD;
    fesetround(mode);
    {
      const HostState host;
      if (fegetround() != FE_TONEAREST) return false;
    }
    return fegetround() == mode;
  });
}

TEST(Races, OneSourceIsCopiedByMany) {
  std::vector<float> source(1000, 1.5f);
  expect_well([&](int, int) {
    std::vector<double> target(1000);
    Array from, to;
    from.data = source.data();
    from.dtype = FPT_FLOAT32;
    to.data = target.data();
    to.dtype = FPT_FLOAT64;
    from.rank = to.rank = 1;
    from.extents[0] = to.extents[0] = 1000;
    set_contiguous(from);
    set_contiguous(to);
    copy(from, to);
    return target.front() == 1.5 && target.back() == 1.5;
  });
}

}  // namespace
}  // namespace fpt
