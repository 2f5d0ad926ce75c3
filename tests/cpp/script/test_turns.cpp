// SPDX-License-Identifier: MIT
/// Calls of a module in several threads against save, which runs alone: who waits for whom, and that nobody waits for
/// ever.
#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

#include "script.hpp"

namespace fpt {
namespace {

using test::in;
using test::outcome;

/// `work` lets go of the interpreter lock in the middle of a change, as torch does. The hook looks twice for half a
/// change, and a file is a note that it was called.
constexpr const char* turns_script = R"(
import ctypes, threading, time
halves, torn, saves, inside = [0, 0], 0, 0, 0
barrier = threading.Barrier(2)
def work():
    mine = halves[0] + 1
    halves[0] = mine
    time.sleep(0.001)
    halves[1] = mine
def ftn_pytorch_save(name):
    global torn, saves, inside
    inside += 1
    torn += halves[0] != halves[1] or inside > 1
    time.sleep(0.002)
    torn += halves[0] != halves[1] or inside > 1
    inside -= 1
    saves += 1
def ftn_pytorch_restore(name): pass
def meet_and_run(address):
    barrier.wait()
    ctypes.CFUNCTYPE(None)(address)()
def run(address):
    ctypes.CFUNCTYPE(None)(address)()
def meet(): barrier.wait()
)";

/// Python calls these by their address, as a callback of the program.
fpt_module first_module = 0, second_module = 0;
std::atomic<int> failures{0};

void save(fpt_module module) {
  if (fpt_module_save(module, "unused", 6) != FPT_OK) ++failures;
}
void call(fpt_module module, const std::string& function, std::vector<fpt_arg> inputs = {}) {
  if (fpt_module_call(module, function.data(), static_cast<int64_t>(function.size()), inputs.data(),
                      static_cast<int32_t>(inputs.size()), nullptr, 0, nullptr) != FPT_OK)
    ++failures;
}
void run_within(fpt_module module, const std::string& function, void (*callback)()) {
  const auto address = reinterpret_cast<int64_t>(callback);
  call(module, function, {in(address)});
}

void save_first() { save(first_module); }
void save_second() { save(second_module); }
void work_in_first() { call(first_module, "work"); }
void work_in_second() { call(second_module, "work"); }
void meet_in_first_and_work() {
  call(first_module, "meet");
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // somebody begins to wait for the call around this
  work_in_first();
}

struct Turns : testing::Test {
  test::Script first{turns_script}, second{turns_script};
  Turns() {
    first_module = first.handle();
    second_module = second.handle();
    failures = 0;
  }
  ~Turns() override { EXPECT_EQ(failures, 0); }
};

TEST_F(Turns, AFileIsNeverWrittenInTheMiddleOfACall) {
  std::vector<std::thread> threads;
  std::atomic<int> running{3};
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&] {
      // one after the other, since the script has no lock of its own
      static std::mutex one_at_a_time;
      for (int i = 0; i < 40; ++i) {
        const std::lock_guard lock(one_at_a_time);
        work_in_first();
      }
      --running;
    });
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&] {
      do save_first();
      while (running > 0);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(first.number("torn"), 0);
  EXPECT_GE(first.number("saves"), 3);
  EXPECT_EQ(first.number("halves[1]"), 120);
}

TEST_F(Turns, SavingIsNotKeptWaitingByCallsThatFollowEachOther) {
  std::atomic<bool> goes_on{true};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      while (goes_on) work_in_first();
    });
  for (int i = 0; i < 20; ++i) save_first();
  goes_on = false;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(first.number("saves"), 20);
}

TEST_F(Turns, ACallMaySaveItsOwnModule) {
  run_within(first_module, "run", save_first);
  EXPECT_EQ(first.number("saves"), 1);
}

TEST_F(Turns, TwoCallsMaySaveTheirModuleAtOnce) {
  std::thread other([] { run_within(first_module, "meet_and_run", save_first); });
  run_within(first_module, "meet_and_run", save_first);
  other.join();
  EXPECT_EQ(first.number("saves"), 2);
  EXPECT_EQ(first.number("torn"), 0);
}

TEST_F(Turns, TwoCallsMaySaveEachOthersModule) {
  std::thread other([] {
    call(first_module, "meet");
    run_within(second_module, "run", save_first);
  });
  run_within(first_module, "meet_and_run", save_second);
  other.join();
  EXPECT_EQ(first.number("saves") + second.number("saves"), 2);
}

TEST_F(Turns, ACallWithinACallPassesWhoWaitsForTheOuterOne) {
  std::thread other([] {
    call(first_module, "meet");
    save_first();
  });
  run_within(first_module, "run", meet_in_first_and_work);
  other.join();
  EXPECT_EQ(first.number("torn"), 0);
  EXPECT_EQ(first.number("halves[1]"), 1);
}

TEST_F(Turns, OtherModulesAreCalledMeanwhile) {
  std::thread saving([] {
    for (int i = 0; i < 20; ++i) save_first();
  });
  for (int i = 0; i < 20; ++i) work_in_second();
  saving.join();
  EXPECT_EQ(second.number("halves[1]"), 20);
}

}  // namespace
}  // namespace fpt
