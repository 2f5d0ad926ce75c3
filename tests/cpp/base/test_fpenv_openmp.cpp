// SPDX-License-Identifier: MIT
/// A program that uses OpenMP shares its pool of threads with torch: what a call must leave as it found it, and what
/// the workers must not carry into torch. Built with OpenMP.
#include <omp.h>

#include <cfenv>

#include "base/fpenv.hpp"
#include "script.hpp"

namespace fpt {
namespace {

using test::in;
using test::out;
using test::Script;

constexpr int team = 4;
constexpr int traps = FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW;

// Arrays are large enough for torch to spread the work over its threads.
const char* const source = R"(
import torch
def divide(x): return (x / x).isnan().all().item()
def logarithm(x): return torch.log(x).isinf().all().item()
def softmax(): return torch.softmax(torch.full((1000, 1000), -torch.inf), 1).isnan().all().item()
def solve(): return torch.linalg.solve(torch.eye(300) * 1e-30, torch.full((300, 300), 1e30)).isinf().any().item()
def tiny(): return (torch.full((1 << 20,), 1e-40) * 1.0).min().item()
def threads(): return torch.get_num_threads()
def set_threads(n): torch.set_num_threads(n); work()
def work(): return torch.ones(1 << 20).add_(1).sum().item()
def fails():
    torch.set_num_threads(1)
    raise ValueError("on purpose")
)";

struct OpenMPTest : testing::Test {
  OpenMPTest() {
    omp_set_num_threads(team);
    script.reset(new Script(source));
  }
  ~OpenMPTest() override {
    fedisableexcept(FE_ALL_EXCEPT);
#pragma omp parallel num_threads(team)
    fesetenv(FE_DFL_ENV);
  }

  /// Traps on in all threads, as in a program built with -ffpe-trap whose pool was made by its first parallel region.
  static void trap_everywhere() {
    feenableexcept(traps);
#pragma omp parallel num_threads(team)
    feenableexcept(traps);
  }

  static int threads_that_trap() {
    int count = 0;
#pragma omp parallel num_threads(team) reduction(+ : count)
    count += fegetexcept() == traps;
    return count;
  }

  double number(const std::string& function, std::vector<fpt_arg> inputs = {}) {
    double value = -1;
    EXPECT_OK(script->call(function, std::move(inputs), {out(value)})) << function;
    return value;
  }
  bool truth(const std::string& function, std::vector<fpt_arg> inputs = {}) {
    bool value = false;
    EXPECT_OK(script->call(function, std::move(inputs), {out(value)})) << function;
    return value;
  }

  std::unique_ptr<Script> script;
};

TEST_F(OpenMPTest, TorchComputesWithoutTrapsInEveryWorker) {
  trap_everywhere();
  ASSERT_EQ(threads_that_trap(), team);
  std::vector<float> zeros(1 << 20);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(truth("divide", {in(zeros)}));
    EXPECT_TRUE(truth("logarithm", {in(zeros)}));
    EXPECT_TRUE(truth("softmax"));
    EXPECT_TRUE(truth("solve"));
  }
}

TEST_F(OpenMPTest, TheWorkersTrapAgainAfterwards) {
  trap_everywhere();
  number("work");
  EXPECT_EQ(threads_that_trap(), team);
  EXPECT_EQ(script->call("fails").status, FPT_ERR_PYTHON);
  EXPECT_EQ(threads_that_trap(), team) << "after an exception";
}

TEST_F(OpenMPTest, TheWorkersTrapAgainWhenTorchHasUsedASmallerTeam) {
  // a smaller team ends threads of the pool, and those that take their place start without traps
  trap_everywhere();
  ASSERT_OK(script->call("set_threads", {in(int32_t{2})}));
  EXPECT_EQ(threads_that_trap(), team);
}

TEST_F(OpenMPTest, WorkersThatTrapOtherwiseThanTheCallerGoOnSo) {
  ASSERT_EQ(fpt_set_threads(team), FPT_OK) << "a smaller team of torch's would end some";
  number("work");
  feenableexcept(traps);
#pragma omp parallel num_threads(team)
  if (omp_get_thread_num() > 0) {
    fedisableexcept(FE_ALL_EXCEPT);
    feenableexcept(FE_INVALID);
  }
  number("work");
  int alike = 0;
#pragma omp parallel num_threads(team) reduction(+ : alike)
  alike += fegetexcept() == (omp_get_thread_num() > 0 ? FE_INVALID : traps);
  EXPECT_EQ(alike, team);
}

TEST_F(OpenMPTest, FlushToZeroOfTheWorkersDoesNotReachTorch) {
#if defined(__x86_64__)
#pragma omp parallel num_threads(team)
  {
    const unsigned flush_to_zero = 0x9FC0;
    __asm__ volatile("ldmxcsr %0" : : "m"(flush_to_zero));
  }
  EXPECT_GT(number("tiny"), 0);
#else
  GTEST_SKIP() << "flush-to-zero is set by other means on this processor";
#endif
}

TEST_F(OpenMPTest, TheTeamOfTheProgramKeepsItsSize) {
  ASSERT_OK(script->call("set_threads", {in(int32_t{1})}));
  EXPECT_EQ(omp_get_max_threads(), team);
  EXPECT_EQ(script->call("fails").status, FPT_ERR_PYTHON);
  EXPECT_EQ(omp_get_max_threads(), team) << "after an exception";
  ASSERT_EQ(fpt_set_threads(3), FPT_OK);
  EXPECT_EQ(omp_get_max_threads(), team);
}

TEST_F(OpenMPTest, TheThreadsOfTorchStayWhatTheyWereSetTo) {
  ASSERT_EQ(fpt_set_threads(3), FPT_OK);
  EXPECT_EQ(number("threads"), 3);
  ASSERT_OK(script->call("set_threads", {in(int32_t{1})}));
  EXPECT_EQ(number("threads"), 1);
  omp_set_num_threads(2);
  EXPECT_EQ(number("threads"), 1);
  EXPECT_EQ(omp_get_max_threads(), 2);
}

TEST_F(OpenMPTest, FewerThanOneThreadIsRefused) {
  EXPECT_FAILS(test::outcome(fpt_set_threads(0)), FPT_ERR_ARGUMENT, "the number of threads is 0");
  EXPECT_EQ(omp_get_max_threads(), team);
}

TEST_F(OpenMPTest, ThreadsOfATeamMayCall) {
  trap_everywhere();
  std::vector<double> sums(team * 50);
  int failures = 0;
#pragma omp parallel num_threads(team) reduction(+ : failures)
  for (int i = 0; i < 50; ++i) {
    double& sum = sums[static_cast<std::size_t>(50 * omp_get_thread_num() + i)];
    failures += script->call("work", {}, {out(sum)}).status != FPT_OK;
    failures += fegetexcept() != traps;
  }
  EXPECT_EQ(failures, 0);
  for (const double sum : sums) ASSERT_EQ(sum, 2 << 20);
}

}  // namespace
}  // namespace fpt
