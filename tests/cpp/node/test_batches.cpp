// SPDX-License-Identifier: MIT
#include <sys/resource.h>
#include <sys/wait.h>

#include "direct/forwarding_runner.hpp"
#include "node/batches.hpp"
#include "node/node_arguments.hpp"
#include "support.hpp"

namespace fpt {
namespace {

/// Its one function doubles the numbers of its input.
class Doubling : public ForwardingRunner {
 public:
  void run(const CallRequest& request) override {
    const Array from = array_of(request.inputs[0]), to = array_of(request.targets.outputs[0]);
    const auto* x = static_cast<const double*>(from.data);
    auto* y = static_cast<double*>(to.data);
    for (int64_t i = 0; i < element_count(from); ++i) y[i] = 2 * x[i];
  }

 private:
  Runner& other() override { fail(FPT_ERR_INTERNAL, "nothing else is asked of it"); }
};

/// Ranks that ask the process in which this runs.
class BatchesTest : public testing::Test {
 protected:
  static constexpr std::size_t ranks = 2;
  const fpt_module module = runners().insert(std::make_unique<Doubling>());
  Board board{ranks};
  Channel channels[ranks];
  std::vector<double> x[ranks], y[ranks];
  Batches batches{module, "net", board, false};

  ~BatchesTest() override { fpt_module_free(module); }

  /// Each rank calls with so many numbers; how its call ends.
  std::vector<fpt_status> call(std::size_t count) {
    std::vector<RankCall> calls;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      x[rank].assign(count, static_cast<double>(rank + 1));
      y[rank].assign(count, 0);
      fpt_arg input = test::in(x[rank]), output = test::out(y[rank]);
      SegmentWriter writer(channels[rank].memory(), 0);
      const CallName name{"f", "net"};
      writer.add(Request{Wish::call, "f"});
      const SentArguments inputs({&input, 1}, "input", name, writer), outputs({&output, 1}, "output", name, writer);
      calls.push_back(batches.read(rank, channels[rank]));
    }
    before_run();
    const std::vector<RankCall> asked = calls;
    batches.run(calls, true);
    std::vector<fpt_status> found;
    for (const RankCall& each : asked) {
      SegmentReader reader(each.channel->memory(), each.end);
      EXPECT_EQ(reader.get<Answering>(), Answering::ended);
      found.push_back(reader.get<Outcome>().status);
      y[each.rank].assign(static_cast<const double*>(each.others[0].data),
                          static_cast<const double*>(each.others[0].data) + count);
    }
    return found;
  }

  std::function<void()> before_run = [] {};
};

TEST_F(BatchesTest, EachRankHasItsOwnResults) {
  EXPECT_EQ(call(3), std::vector<fpt_status>(ranks, FPT_OK));
  EXPECT_EQ(y[0], std::vector<double>(3, 2));
  EXPECT_EQ(y[1], std::vector<double>(3, 4));
}

TEST_F(BatchesTest, WithoutMemoryForTheArraysOfAllRanksTheCallsFailAndNotTheProcess) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the allocator of the sanitizer ends a process without memory";
#endif
  const pid_t child = fork();
  if (child == 0) {
    rlimit all;
    getrlimit(RLIMIT_AS, &all);
    before_run = [&] {
      rlim_t pages = 0;
      std::ifstream("/proc/self/statm") >> pages;
      const rlimit limit{pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + (1 << 20), all.rlim_max};
      setrlimit(RLIMIT_AS, &limit);
    };
    try {
      const std::vector<fpt_status> found = call(4 << 20);
      _exit(found == std::vector<fpt_status>(ranks, FPT_ERR_MEMORY) ? 0 : 1);
    } catch (...) {
      _exit(2);
    }
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace fpt
