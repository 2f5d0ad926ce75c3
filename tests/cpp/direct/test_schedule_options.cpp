// SPDX-License-Identifier: MIT
/// That torch's schedulers come out of options, and these out of them, is in test_schedule.cpp.
#include <limits>

#include "direct/schedule_options.hpp"
#include "support.hpp"

namespace fpt::test {
namespace {

std::optional<Schedule> made(std::vector<fpt_arg> inputs) { return schedule_of(inputs); }

TEST(ScheduleOptions, ThatAreOddAreLeftToPython) {
  EXPECT_TRUE(made({in("StepLR"), named("step_size", in(2))}));
  EXPECT_TRUE(made({in("ExponentialLR"), named("gamma", in(0.5f))}));
  std::vector<int64_t> none;
  std::vector<double> reals{1, 2};
  const std::vector<std::vector<fpt_arg>> odd = {
      {},
      {in(1)},
      {in("LambdaLR")},
      {in("StepLR")},
      {in("StepLR"), in(2)},
      {in("StepLR"), named("step_size", in(0))},
      {in("StepLR"), named("step_size", in(2.0))},
      {in("StepLR"), named("step_size", in(true))},
      {in("StepLR"), named("step_size", in("2"))},
      {in("StepLR"), named("step_size", in(2)), named("step_size", in(2))},
      {in("StepLR"), named("step_size", in(2)), named("T_max", in(2))},
      {in("StepLR"), named("step_size", in(2)), named("last_epoch", in(0))},
      {in("StepLR"), named("step_size", in(2)), named("gamma", in(1))},
      {in("StepLR"), named("step_size", in(2)), named("gamma", in(std::numeric_limits<double>::infinity()))},
      {in("CosineAnnealingLR"), named("T_max", in((int64_t{1} << 53) + 1))},
      {in("MultiStepLR"), named("milestones", in(3))},
      {in("MultiStepLR"), named("milestones", in(reals))},
      {in("MultiStepLR"), named("milestones", in(none))},
      {in("LinearLR"), named("start_factor", in(0.0))},
      {in("LinearLR"), named("start_factor", in(1.5))},
      {in("LinearLR"), named("end_factor", in(-0.5))},
      {in("LinearLR"), named("end_factor", in(1.5))},
      {in("LinearLR"), named("total_iters", in(0))},
  };
  for (std::size_t i = 0; i < odd.size(); ++i) EXPECT_FALSE(made(odd[i])) << i;
}

}  // namespace
}  // namespace fpt::test
