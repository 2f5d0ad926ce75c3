// SPDX-License-Identifier: MIT
/// Threads that come and go, and what they leave behind. Each case runs in a process of its own.
#include <atomic>
#include <thread>

#include "script.hpp"

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

}  // namespace
}  // namespace fpt
