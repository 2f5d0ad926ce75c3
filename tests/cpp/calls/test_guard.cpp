// SPDX-License-Identifier: MIT
#include <cfenv>
#include <stdexcept>

#include "calls/guard.hpp"
#include "support.hpp"

namespace fpt {
namespace {

/// What a caller gets to see of a body.
template <class Body>
test::Outcome guarded(const Body& body) {
  const fpt_status status = guard(body);
  return {status, last_error()};
}

TEST(Guard, WithoutAFailureIsOkAndLeavesTheTextOfTheLastOneAlone) {
  remember_error(FPT_ERR_SHAPE, "of an earlier call");
  EXPECT_EQ(guard([] {}), FPT_OK);
  EXPECT_EQ(last_error(), "of an earlier call");
}

TEST(Guard, FailuresOfTheLibraryKeepStatusAndText) {
  EXPECT_FAILS(guarded([] { fail(FPT_ERR_SHAPE, "of shape ", 3); }), FPT_ERR_SHAPE, "of shape 3");
}

TEST(Guard, MemoryThatIsNotThereHasItsOwnStatus) {
  EXPECT_FAILS(guarded([] { throw std::bad_alloc(); }), FPT_ERR_MEMORY, "out of memory");
  EXPECT_FAILS(guarded([] { throw std::bad_array_new_length(); }), FPT_ERR_MEMORY, "out of memory");
}

TEST(Guard, OtherExceptionsAreDefectsWithTheirText) {
  EXPECT_FAILS(guarded([] { throw std::out_of_range("index 7"); }), FPT_ERR_INTERNAL, "index 7");
}

TEST(Guard, WhatAnotherLibraryHasCaughtIsKnownOutsideOfTheHandler) {
  const Error thrown(FPT_ERR_SHAPE, "of shape 3");
  EXPECT_FAILS((test::Outcome{report_exception(std::make_exception_ptr(thrown)), last_error()}), FPT_ERR_SHAPE,
               "of shape 3");
}

TEST(Guard, WhatIsNoStandardExceptionIsToldToo) {
  EXPECT_FAILS(guarded([] { throw 7; }), FPT_ERR_INTERNAL, "exception of unknown type");
}

TEST(GuardCall, FloatingPointStateComesBackAfterAFailureToo) {
  fesetenv(FE_DFL_ENV);
  feenableexcept(FE_DIVBYZERO);
  fesetround(FE_UPWARD);
  int inside = -1, rounding = -1;
  const fpt_status status = guard_call([&] {
    inside = fegetexcept();
    rounding = fegetround();
    volatile double zero = 0, result = 1 / zero;
    (void)result;
    throw std::bad_alloc();
  });
  const int after = fegetexcept(), rounding_after = fegetround(), raised = fetestexcept(FE_DIVBYZERO);
  fesetenv(FE_DFL_ENV);
  EXPECT_EQ(status, FPT_ERR_MEMORY);
  EXPECT_EQ(inside, 0);
  EXPECT_EQ(rounding, FE_TONEAREST);
  EXPECT_EQ(after, FE_DIVBYZERO);
  EXPECT_EQ(rounding_after, FE_UPWARD);
  EXPECT_EQ(raised, 0);
}

TEST(GuardCall, IsACrossingWhereCallsAreObserved) {
  Crossing* seen = nullptr;
  const auto body = [&] { seen = Crossing::current(); };
  EXPECT_EQ(guard_call({0, "f"}, body), FPT_OK);
  EXPECT_EQ(seen, nullptr);
  observing = true;
  const fpt_status status = guard_call({0, "f"}, [&] {
    body();
    fail(FPT_ERR_SHAPE, "wrong");
  });
  observing = false;
  EXPECT_EQ(status, FPT_ERR_SHAPE);
  EXPECT_NE(seen, nullptr);
  EXPECT_EQ(Crossing::current(), nullptr) << "it has ended";
}

}  // namespace
}  // namespace fpt
