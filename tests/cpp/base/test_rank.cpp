// SPDX-License-Identifier: MIT
#include "base/rank.hpp"
#include "support.hpp"

namespace fpt {
namespace {

using test::Variable;

class RankTest : public testing::Test {
 protected:
  // the tests may themselves run below a launcher
  Variable open_mpi{"OMPI_COMM_WORLD_SIZE", nullptr}, mpich{"PMI_SIZE", nullptr},
      mvapich{"MV2_COMM_WORLD_SIZE", nullptr}, slurm{"SLURM_STEP_NUM_TASKS", nullptr};
};

TEST_F(RankTest, WithoutALauncherThereIsOne) {
  EXPECT_EQ(rank().number, 0);
  EXPECT_EQ(rank().count, 1);
  EXPECT_EQ(with_rank("a%r/b%r"), "a0/b0");
  EXPECT_EQ(name_for_rank("trace.json"), "trace.json");
}

TEST_F(RankTest, EveryLauncherIsUnderstood) {
  for (const auto& [size, number] : {std::pair{"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"},
                                     {"PMI_SIZE", "PMI_RANK"},
                                     {"MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK"},
                                     {"SLURM_STEP_NUM_TASKS", "SLURM_PROCID"}}) {
    const Variable count(size, "16"), own(number, "12");
    EXPECT_EQ(rank().number, 12) << number;
    EXPECT_EQ(rank().count, 16) << size;
  }
}

TEST_F(RankTest, TheFirstOneIsOneOfAll) {
  const Variable count("PMI_SIZE", "16"), own("PMI_RANK", "0");
  EXPECT_EQ(rank().number, 0);
  EXPECT_EQ(rank().count, 16);
  EXPECT_EQ(name_for_rank("trace.json"), "trace.0.json");
}

TEST_F(RankTest, NonsenseIsNoLauncher) {
  for (const char* nonsense : {"many", "", "-1", "4x"}) {
    const Variable count("PMI_SIZE", nonsense), own("PMI_RANK", "1");
    EXPECT_EQ(rank().count, 1) << nonsense;
  }
}

TEST_F(RankTest, NamesGetTheRankWhereTheyAskForIt) {
  const Variable count("PMI_SIZE", "16"), own("PMI_RANK", "12");
  EXPECT_EQ(with_rank("state"), "state");
  EXPECT_EQ(with_rank("%r/state.%r"), "12/state.12");
  EXPECT_EQ(with_rank("100%"), "100%");
  EXPECT_EQ(name_for_rank("log-%r.txt"), "log-12.txt");
}

TEST_F(RankTest, FilesOfEachRankGetItBeforeTheExtensionOtherwise) {
  const Variable count("PMI_SIZE", "16"), own("PMI_RANK", "12");
  EXPECT_EQ(name_for_rank("trace.json"), "trace.12.json");
  EXPECT_EQ(name_for_rank("a.b/trace"), "a.b/trace.12");
  EXPECT_EQ(name_for_rank("a/.hidden"), "a/.hidden.12");
}

}  // namespace
}  // namespace fpt
