// SPDX-License-Identifier: MIT
#include <unistd.h>

#include "base/error.hpp"
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

TEST_F(RankTest, JobsAreToldApartByTheirNamesOrByTheirParent) {
  const Variable pmix("PMIX_NAMESPACE", nullptr), open_mpi_job("OMPI_MCA_ess_base_jobid", nullptr),
      slurm_job("SLURM_JOB_ID", nullptr), step("SLURM_STEP_ID", nullptr);
  EXPECT_FALSE(job());
  const Variable count("PMI_SIZE", "16"), own("PMI_RANK", "12");
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  EXPECT_EQ(job(), concat(host, ".", getppid()));
  {
    const Variable job_alone("SLURM_JOB_ID", "7");
    EXPECT_EQ(job(), concat(host, ".", getppid()));
    const Variable both("SLURM_STEP_ID", "0");
    EXPECT_EQ(job(), "SLURM_JOB_ID.7.0");
    const Variable first("PMIX_NAMESPACE", "prterun-4711@1");
    EXPECT_EQ(job(), "PMIX_NAMESPACE.prterun-4711@1");
  }
  const Variable empty("PMIX_NAMESPACE", ""), of_open_mpi("OMPI_MCA_ess_base_jobid", "123");
  EXPECT_EQ(job(), "OMPI_MCA_ess_base_jobid.123");
}

}  // namespace
}  // namespace fpt
