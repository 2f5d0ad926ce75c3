// SPDX-License-Identifier: MIT
/// What belongs to the host program and stays as it was: pools of threads, affinity, buffers of C. Each case runs in a
/// process of its own, because most of it can change once only.
#include <dlfcn.h>
#include <sched.h>
#include <stdio_ext.h>

#include <cfenv>
#include <cstdio>
#include <thread>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "script.hpp"

namespace fpt {
namespace {

using test::in;
using test::out;
using test::Script;

std::vector<int> affinity() {
  cpu_set_t set;
  sched_getaffinity(0, sizeof set, &set);
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  return cores;
}

TEST(Surroundings, AffinityStaysWhereOpenMPBindsThreads) {
  // torch loads an OpenMP runtime, and that binds the thread that loads it
  const test::Variable bind("OMP_PROC_BIND", "true"), places("OMP_PLACES", "cores");
  const std::vector<int> before = affinity();
  const Script script("import torch\ndef f(): return torch.ones(1 << 20).add_(1).sum()");
  EXPECT_EQ(affinity(), before) << "after load";
  double sum = 0;
  for (int i = 0; i < 3; ++i) ASSERT_OK(script.call("f", {}, {out(sum)}));
  EXPECT_EQ(affinity(), before) << "after calls";
  std::thread([&] { EXPECT_EQ(affinity(), before) << "of threads that are made later"; }).join();
}

TEST(Surroundings, BuffersOfCStayWhereTheVariableForPythonSaysUnbuffered) {
  const test::Variable unbuffered("PYTHONUNBUFFERED", "1");
  static char output[4096], input[4096];
  std::setvbuf(stdout, output, _IOFBF, sizeof output);
  std::setvbuf(stdin, input, _IOFBF, sizeof input);
  const Script script("def f(): return 1.0");
  EXPECT_EQ(__fbufsize(stdout), sizeof output);
  EXPECT_EQ(__fbufsize(stdin), sizeof input);
}

}  // namespace
}  // namespace fpt
