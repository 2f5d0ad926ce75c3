// SPDX-License-Identifier: MIT
#include "direct/schedules.hpp"
#include "support.hpp"

namespace fpt::test {
namespace {

Schedule halving() {
  Schedule schedule;
  schedule.kind = ScheduleKind::exponential;
  schedule.gamma = 0.5;
  return schedule;
}

TEST(Schedules, BeginWithTheRateOfTheFirst) {
  Schedules schedules;
  double rate = 8;
  Schedule cosine;
  cosine.kind = ScheduleKind::cosine;
  cosine.period = 1;
  const auto first = schedules.add(halving(), rate);
  schedules.optimizer_stepped();
  rate = 2;
  const auto second = schedules.add(cosine, rate);
  EXPECT_TRUE(schedules.step(*second, rate));
  EXPECT_EQ(rate, 0);
  EXPECT_TRUE(schedules.step(*second, rate));
  EXPECT_EQ(rate, 8) << "the rate before any scheduler";
  EXPECT_TRUE(schedules.step(*first, rate));
  EXPECT_EQ(rate, 4);
  EXPECT_EQ(second->rate, 8) << "the rate after its own step";
}

TEST(Schedules, StayAsTheyAreWherePythonWouldRaise) {
  Schedules schedules;
  double rate = 8;
  Schedule steep;
  steep.kind = ScheduleKind::multi_step;
  steep.gamma = 1e200;
  steep.milestones = {0, 0};
  EXPECT_FALSE(schedules.add(steep, rate));
  EXPECT_EQ(rate, 8);
  steep.milestones = {1, 1};
  const auto running = schedules.add(steep, rate);
  ASSERT_TRUE(running);
  schedules.optimizer_stepped();
  EXPECT_FALSE(schedules.step(*running, rate));
  EXPECT_EQ(rate, 8);
  EXPECT_EQ(running->steps, 1);
}

}  // namespace
}  // namespace fpt::test
