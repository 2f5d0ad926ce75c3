// SPDX-License-Identifier: MIT
/// One observed call as its parts see it. What comes of it is in tests/diagnosis: log, table and trace of whole
/// programs.
#include <thread>

#include "observe/observe.hpp"
#include "support.hpp"

namespace fpt {
namespace {

TEST(Crossing, IsTheInnermostOfItsThread) {
  EXPECT_EQ(Crossing::current(), nullptr);
  {
    const Crossing outer({0, "f"});
    EXPECT_EQ(Crossing::current(), &outer);
    {
      const Crossing inner(CallFacts::of_whole(0, "save", "file"));
      EXPECT_EQ(Crossing::current(), &inner) << "a script calls back";
    }
    EXPECT_EQ(Crossing::current(), &outer);
    std::thread([] { EXPECT_EQ(Crossing::current(), nullptr); }).join();
  }
  EXPECT_EQ(Crossing::current(), nullptr);
}

TEST(Crossing, WantsNoDescriptionWithoutALog) { EXPECT_FALSE(Crossing({0, "f"}).wants_description()); }

TEST(Crossing, CountsTheArraysThatAreMadeInside) {
  Crossing outer({0, "f"});
  count_array();
  EXPECT_EQ(outer.arrays_made, 0) << "nothing is observed";
  observing = true;
  count_array();
  count_array();
  {
    Crossing inner({0, "g"});
    count_array();
    EXPECT_EQ(inner.arrays_made, 1);
  }
  std::thread([] { count_array(); }).join();
  observing = false;
  EXPECT_EQ(outer.arrays_made, 2);
}

TEST(StartObserving, WithoutVariablesObservesNothing) {
  for (const char* name : {"LOG", "PROFILE", "TRACE", "RECORD"}) unsetenv(concat("FTN_PYTORCH_", name).c_str());
  start_observing();
  EXPECT_FALSE(is_observed());
  EXPECT_FALSE(records());
}

}  // namespace
}  // namespace fpt
