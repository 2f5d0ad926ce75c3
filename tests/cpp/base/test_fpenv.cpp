// SPDX-License-Identifier: MIT
#include <cfenv>
#include <limits>
#include <stdexcept>
#include <thread>

#include "base/fpenv.hpp"
#include "support.hpp"
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace fpt {
namespace {

volatile double zero = 0;
volatile double one = 1;
volatile double huge = std::numeric_limits<double>::max();
volatile long double long_zero = 0;
volatile long double long_one = 1;

/// Each case starts in the default environment and leaves it behind.
struct FloatingPointState : testing::Test {
  void SetUp() override { fesetenv(FE_DFL_ENV); }
  void TearDown() override { fesetenv(FE_DFL_ENV); }
};

void raise_everything() {
  volatile double result = zero / zero;
  result = one / zero;
  result = huge * huge;
  (void)result;
}

TEST_F(FloatingPointState, TrapsAreOffInsideAndOnAgainAfterwards) {
  feenableexcept(FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW);
  {
    const HostState host;
    EXPECT_EQ(fegetexcept(), 0);
    raise_everything();
  }
  EXPECT_EQ(fegetexcept(), FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW);
}

TEST_F(FloatingPointState, WhatIsRaisedInsideIsNotSeenOutside) {
  {
    const HostState host;
    raise_everything();
    ASSERT_TRUE(fetestexcept(FE_INVALID));
  }
  EXPECT_EQ(fetestexcept(FE_ALL_EXCEPT), 0);
}

TEST_F(FloatingPointState, FlagsThatWereRaisedBeforeStayRaised) {
  feraiseexcept(FE_INEXACT | FE_UNDERFLOW);
  {
    const HostState host;
    feclearexcept(FE_ALL_EXCEPT);
    raise_everything();
  }
  EXPECT_EQ(fetestexcept(FE_ALL_EXCEPT), FE_INEXACT | FE_UNDERFLOW);
}

TEST_F(FloatingPointState, FlagsOfALaterTrapAreRestoredWithoutTrapping) {
  volatile double result = one / zero;  // raises the flag while nothing traps
  feenableexcept(FE_DIVBYZERO);
  {
    const HostState host;
  }
  result = one + one;
  EXPECT_EQ(result, 2);
  EXPECT_TRUE(fetestexcept(FE_DIVBYZERO));
}

TEST_F(FloatingPointState, RoundingIsToNearestInsideAndTheCallersAfterwards) {
  for (const int mode : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO, FE_TONEAREST}) {
    fesetround(mode);
    {
      const HostState host;
      EXPECT_EQ(fegetround(), FE_TONEAREST);
      fesetround(FE_UPWARD);
    }
    EXPECT_EQ(fegetround(), mode);
  }
}

TEST_F(FloatingPointState, ComesBackWhenAnExceptionPasses) {
  feenableexcept(FE_INVALID);
  fesetround(FE_UPWARD);
  try {
    const HostState host;
    raise_everything();
    throw std::runtime_error("from inside");
  } catch (const std::runtime_error&) {
  }
  EXPECT_EQ(fegetexcept(), FE_INVALID);
  EXPECT_EQ(fegetround(), FE_UPWARD);
  EXPECT_EQ(fetestexcept(FE_ALL_EXCEPT), 0);
}

TEST_F(FloatingPointState, NestsWhenPythonCallsBack) {
  feenableexcept(FE_DIVBYZERO);
  {
    const HostState outer;
    {
      const HostState inner;
      raise_everything();
    }
    EXPECT_EQ(fegetexcept(), 0) << "the inner one belongs to code that runs inside";
    raise_everything();
  }
  EXPECT_EQ(fegetexcept(), FE_DIVBYZERO);
}

TEST_F(FloatingPointState, BelongsToTheThread) {
  feenableexcept(FE_DIVBYZERO);
  std::thread([] {
    feenableexcept(FE_INVALID);
    {
      const HostState host;
    }
    EXPECT_EQ(fegetexcept(), FE_INVALID | FE_DIVBYZERO) << "inherited, and added";
  }).join();
  {
    const HostState host;
  }
  EXPECT_EQ(fegetexcept(), FE_DIVBYZERO);
}

TEST_F(FloatingPointState, ModeIsToldInOneLine) {
  EXPECT_STREQ(floating_point_mode(), "default");
  feenableexcept(FE_INVALID);
  EXPECT_STREQ(floating_point_mode(), "traps on");
}

#if defined(__x86_64__)

uint16_t x87_control() {
  uint16_t value;
  __asm__ volatile("fnstcw %0" : "=m"(value));
  return value;
}

void set_x87_control(uint16_t value) { __asm__ volatile("fldcw %0" : : "m"(value)); }

uint16_t x87_flags() {
  uint16_t value;
  __asm__ volatile("fnstsw %0" : "=m"(value));
  return value & 0x3F;
}

TEST_F(FloatingPointState, FlushToZeroIsOffInsideAndOnAgainAfterwards) {
  _mm_setcsr(0x9FC0);  // what -ffast-math sets at program start: flush-to-zero and denormals-are-zero
  EXPECT_STREQ(floating_point_mode(), "flush-to-zero on");
  {
    const HostState host;
    volatile float tiny = 1e-40f;
    EXPECT_GT(tiny * 1.0f, 0.0f);
  }
  EXPECT_EQ(_mm_getcsr(), 0x9FC0u);
}

TEST_F(FloatingPointState, TrapsAndFlushToZeroAreToldTogether) {
  _mm_setcsr(0x9FC0 & ~0x0080u);
  EXPECT_STREQ(floating_point_mode(), "traps on, flush-to-zero on");
}

TEST_F(FloatingPointState, PrecisionOfTheX87UnitIsTheCallersAfterwards) {
  const uint16_t double_precision = 0x027F;
  set_x87_control(double_precision);
  {
    const HostState host;
    EXPECT_EQ(x87_control(), 0x037F);
  }
  EXPECT_EQ(x87_control(), double_precision);
}

TEST_F(FloatingPointState, FlagsOfTheX87UnitAreTheCallersAfterwards) {
  {
    const HostState host;
    volatile long double result = long_one / long_zero;
    (void)result;
    ASSERT_NE(x87_flags(), 0);
  }
  EXPECT_EQ(x87_flags(), 0);
  volatile long double result = long_one / long_zero;
  const uint16_t before = x87_flags();
  {
    const HostState host;
    feclearexcept(FE_ALL_EXCEPT);
  }
  EXPECT_EQ(x87_flags(), before);
  (void)result;
}

TEST_F(FloatingPointState, TrapsOfTheX87UnitComeBackToo) {
  feenableexcept(FE_DIVBYZERO);
  {
    const HostState host;
    volatile long double result = long_one / long_zero;
    (void)result;
  }
  EXPECT_EQ(x87_control() & 0x04, 0) << "division by zero is unmasked";
  volatile long double result = long_one + long_one;
  EXPECT_EQ(result, 2) << "no trap is pending";
}

#endif

TEST(OpenMPTeam, IsUnknownWithoutAnOpenMPRuntime) { EXPECT_EQ(openmp_team_size(), 0); }

}  // namespace
}  // namespace fpt
