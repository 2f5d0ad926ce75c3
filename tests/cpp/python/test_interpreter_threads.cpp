// SPDX-License-Identifier: MIT
/// Threads that come and go, and what they leave behind. Each case runs in a process of its own.
#include <pybind11/embed.h>
#include <sys/syscall.h>

#include <atomic>
#include <chrono>
#include <future>
#include <thread>

#include "observe/observe.hpp"
#include "python/interpreter.hpp"
#include "python/ownership.hpp"
#include "script.hpp"
#include "torch/framework.hpp"
#include "values/engine.hpp"

namespace fpt {
namespace {

using test::in;
using test::out;
using test::Script;

long resident_kilobytes() {
  std::ifstream statm("/proc/self/statm");
  long pages = 0, resident = 0;
  statm >> pages >> resident;
  return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

TEST(ShortLivedThreads, LeaveNothingBehind) {
  const Script script("import torch\ndef f(x): return 2 * x\ndef fails(): raise ValueError('x' * 5000)");
  const auto run = [&](int n) {
    for (int i = 0; i < n; ++i)
      std::thread([&] {
        std::vector<double> x = {1.0 * i}, y = {-1};
        ASSERT_OK(script.call("f", {in(x)}, {out(y)}));
        ASSERT_EQ(y[0], 2.0 * i);
        ASSERT_EQ(script.call("fails").status, FPT_ERR_PYTHON);
      }).join();
  };
  run(200);
  const long before = resident_kilobytes();
  run(1000);
  EXPECT_LT(resident_kilobytes() - before, 2048) << "kB for 1000 threads";
}

TEST(OtherThreads, AreThoseThatHaveCalledAndLive) {
  const Script script("def f(): pass");
  ASSERT_OK(script.call("f"));
  EXPECT_EQ(other_threads(), 0);
  std::promise<void> has_called, may_end;
  std::thread other([&] {
    EXPECT_EQ(other_threads(), 1) << "this one, before it calls";
    ASSERT_OK(script.call("f"));
    has_called.set_value();
    may_end.get_future().wait();
  });
  has_called.get_future().wait();
  EXPECT_EQ(other_threads(), 1);
  may_end.set_value();
  other.join();
  EXPECT_EQ(other_threads(), 0);
}

/// Wait until a thread does nothing. Whether it really waits for the lock decides only what a case would have found.
void wait_until_it_sleeps(const std::atomic<long>& thread) {
  char state = 0;
  for (int i = 0; state != 'S' && i < 5000; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::ifstream file("/proc/self/task/" + std::to_string(thread.load()) + "/stat");
    std::string number, name;
    file >> number >> name >> state;
  }
}

TEST(FirstUse, OfTensorsHoldsUpNoThreadThatHasTheLock) {
  const test::Folder folder;
  folder.write("libftn_pytorch_direct.torch", "/nowhere/torch\n2.10.0\n");  // Python is asked whether it has this one
  const test::Variable extensions("FTN_PYTORCH_EXTENSIONS", folder.path().string());
  const Script script("def f(): pass");
  std::atomic<long> number{0};
  std::thread first;
  {
    const InterpreterLock gil;
    first = std::thread([&] {
      number = syscall(SYS_gettid);
      EXPECT_EQ(libtorch_engine(), nullptr);
    });
    wait_until_it_sleeps(number);
    EXPECT_EQ(libtorch_engine(), nullptr);  // as for a script that returns a tensor
  }
  first.join();
}

// Up to Python 3.11 garbage is collected where an object is made, so its finalizers run there.
TEST(FirstUse, OfWhatIsMadeOnceMayLetGoOfTheLock) {
  const Script script("def f(): pass");
  std::vector<double> numbers = {1};
  const Array array = array_of(in(numbers));
  const InterpreterLock gil;
  EXPECT_TRUE(make_array(Framework::numpy, array, nullptr, false).object) << "imported";
  const std::function<void()> uses[] = {
      [] { EXPECT_TRUE(counts_are_proof()); },
      [&] { EXPECT_TRUE(make_array(Framework::numpy, array, std::make_shared<int>(), false).object); }};
  for (const auto& use : uses) {
    pybind11::dict names;
    names["other"] = pybind11::cpp_function([&use] {
      const InterpreterPause pause;
      std::thread([&use] {
        const InterpreterLock also;
        use();
      }).join();
    });
    pybind11::exec(R"(
import gc
class Garbage:
    def __init__(self): self.itself = self
    def __del__(self, other=other):
        gc.disable()
        other()
gc.collect()
Garbage()
gc.set_threshold(1)
)",
                   names);
    use();
  }
}

bool is_told = false;

TEST(Warnings, OfTheStartHoldUpNobody) {
  const test::Variable log("FTN_PYTORCH_LOG", "everything");
  fpt_on_warning([](const char*, int64_t) {
    std::thread(start_observing).join();  // as a handler that takes the lock, and somebody with the lock who comes here
    is_told = true;
  });
  start_observing();
  fpt_on_warning(nullptr);
  EXPECT_TRUE(is_told);
}

}  // namespace
}  // namespace fpt
