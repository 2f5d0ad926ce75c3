// SPDX-License-Identifier: MIT
/// A pool of threads that does not exist before the first call: its workers belong to the program all the same, and
/// carry what its main thread carries. Each case needs a process whose pool is new.
#include <omp.h>

#include <cfenv>

#include "script.hpp"
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace fpt {
namespace {

using test::Script;

constexpr int pool_team = 4;
constexpr int pool_traps = FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW;

#if defined(__x86_64__)

/// Workers with the traps, and with the flush-to-zero mode, of the thread that starts the team.
void count_alike(int& trap, int& flush) {
  trap = flush = 0;
#pragma omp parallel num_threads(pool_team) reduction(+ : trap, flush)
  {
    trap += fegetexcept() == pool_traps;
    flush += (_mm_getcsr() & 0x8040) == 0x8040;
  }
}

TEST(NewPool, HasTheStateOfTheProgramAfterACall) {
  omp_set_num_threads(pool_team);
  feenableexcept(pool_traps);
  _mm_setcsr(_mm_getcsr() | 0x8040);  // what -ffast-math sets at the start of a program
  const Script script("import torch\ndef f(): return torch.ones(1 << 20).add_(1).sum()");
  double sum = 0;
  int trap = 0, flush = 0;
  for (int i = 0; i < 3; ++i) {
    ASSERT_OK(script.call("f", {}, {test::out(sum)}));
    count_alike(trap, flush);
    EXPECT_EQ(trap, pool_team);
    EXPECT_EQ(flush, pool_team);
  }
  fesetenv(FE_DFL_ENV);
}

#endif

}  // namespace
}  // namespace fpt
