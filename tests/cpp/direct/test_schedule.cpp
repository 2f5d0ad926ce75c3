// SPDX-License-Identifier: MIT
/// Rates that torch has written: tests/fortran/scripts/schedules.py.
#include <map>
#include <sstream>

#include "direct/schedule.hpp"
#include "direct/schedule_options.hpp"
#include "support.hpp"

namespace fpt::test {
namespace {

/// A scheduler, and what it does.
struct Case {
  std::string name;
  double first = 0;
  std::vector<fpt_arg> inputs;
  std::map<int64_t, double> changes;
  std::vector<double> rates;
  std::vector<int64_t> row;
};

std::vector<double> rates_of(const Schedule& schedule, const Case& wanted) {
  double rate = wanted.first;
  std::vector<double> rates;
  for (int64_t epoch = 0; epoch < static_cast<int64_t>(wanted.rates.size()); ++epoch) {
    if (const auto change = wanted.changes.find(epoch); change != wanted.changes.end()) rate = change->second;
    rate = next_rate(schedule, epoch, wanted.first, rate).value();
    rates.push_back(rate);
  }
  return rates;
}

std::optional<Schedule> made(std::vector<fpt_arg> inputs) { return schedule_of(inputs); }

TEST(Schedule, HasTheRatesOfTorch) {
  std::ifstream file("direct_schedules.txt");
  ASSERT_TRUE(file);
  Case now;
  int cases = 0;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string word, name;
    words >> word;
    if (word == "class") {
      now = {};
      words >> now.name >> now.first;
      now.inputs.push_back(in(now.name.c_str()));
    } else if (word == "integer") {
      int64_t value;
      words >> name >> value;
      now.inputs.push_back(named(name.c_str(), in(value)));
    } else if (word == "real") {
      double value;
      words >> name >> value;
      now.inputs.push_back(named(name.c_str(), in(value)));
    } else if (word == "row") {
      std::size_t count;
      words >> name >> count;
      now.row.resize(count);
      for (int64_t& each : now.row) words >> each;
      now.inputs.push_back(named(name.c_str(), in(now.row)));
    } else if (word == "set") {
      int64_t step;
      words >> step;
      words >> now.changes[step];
    } else if (word == "rates") {
      std::size_t steps;
      words >> steps;
      now.rates.resize(steps + 1);
      for (double& each : now.rates) words >> each;
      ASSERT_TRUE(words) << line;
      std::optional<Schedule> schedule = made(now.inputs);
      ASSERT_TRUE(schedule) << now.name;
      EXPECT_EQ(rates_of(*schedule, now), now.rates) << now.name;
      const std::optional<Schedule> again = made(inputs_of(*schedule));
      ASSERT_TRUE(again) << now.name;
      EXPECT_EQ(rates_of(*again, now), now.rates) << now.name << " as Python is asked for it";
      ++cases;
    }
  }
  EXPECT_GT(cases, 10);
}

TEST(Schedule, LeavesToPythonWhatItWouldRaise) {
  Schedule schedule;
  schedule.kind = ScheduleKind::multi_step;
  schedule.gamma = 1e200;
  schedule.milestones = {3, 3};
  EXPECT_EQ(next_rate(schedule, 2, 1, 1), 1);
  EXPECT_FALSE(next_rate(schedule, 3, 1, 1)) << "OverflowError";
  schedule.kind = ScheduleKind::cosine;
  schedule.period = int64_t{1} << 40;
  EXPECT_FALSE(next_rate(schedule, schedule.period, 1, 1)) << "ZeroDivisionError";
  schedule.kind = ScheduleKind::polynomial;
  schedule.power = -1;
  EXPECT_TRUE(next_rate(schedule, schedule.period - 1, 1, 1));
  EXPECT_FALSE(next_rate(schedule, schedule.period, 1, 1)) << "ZeroDivisionError";
}

}  // namespace
}  // namespace fpt::test
