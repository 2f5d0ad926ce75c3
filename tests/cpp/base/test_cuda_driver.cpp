// SPDX-License-Identifier: MIT
/// Names of GPUs. The driver is played by test_cuda_context.cpp and arrays/test_device.cpp: it has two GPUs.
#include "base/cuda_context.hpp"
#include "support.hpp"

namespace fpt {
namespace {

struct LocalRank : testing::Test {
  ~LocalRank() override { unsetenv("SLURM_LOCALID"); }
};

test::Outcome refused(const char* name) {
  return test::outcome_of([&] { gpu_of_name(name); });
}

TEST(GpuOfName, IsItsNumber) {
  EXPECT_EQ(gpu_of_name("cuda"), 0);
  EXPECT_EQ(gpu_of_name("cuda:0"), 0);
  EXPECT_EQ(gpu_of_name("cuda:1"), 1);
}

TEST(GpuOfName, IsRefusedWhereThereIsNone) {
  EXPECT_FAILS(refused("cuda:2"), FPT_ERR_DEVICE, "device is 'cuda:2', but the driver of CUDA finds 2 GPUs");
  for (const char* name : {"cpu", "", "cuda:", "cuda:-1", "cuda:1x", "cud", "CUDA:0"})
    EXPECT_FAILS(refused(name), FPT_ERR_DEVICE, "use \"cuda\", \"cuda:1\" or \"cuda:local\"") << name;
}

TEST_F(LocalRank, ChoosesAmongTheGpusOfTheNode) {
  EXPECT_EQ(gpu_of_name("cuda:local"), 0) << "without a launcher";
  setenv("SLURM_LOCALID", "3", 1);
  EXPECT_EQ(gpu_of_name("cuda:local"), 1);
  setenv("SLURM_LOCALID", "4", 1);
  EXPECT_EQ(gpu_of_name("cuda:local"), 0);
}

TEST_F(LocalRank, ChoosesWhereTheNameLeavesItOpen) {
  setenv("SLURM_LOCALID", "3", 1);
  EXPECT_EQ(gpu_of_name("cuda"), 1);
  EXPECT_EQ(gpu_of_name("cuda:0"), 0) << "as it says";
  make_primary_context_current(0);
  EXPECT_EQ(gpu_of_name("cuda"), 0) << "the GPU that the program uses already";
  EXPECT_EQ(gpu_of_name("cuda:local"), 1);
  cuda_driver()->set_context(nullptr);
}

TEST(CudaDriver, IsKnownOnceItWasFound) {
  EXPECT_NE(cuda_driver(), nullptr);
  EXPECT_EQ(known_cuda_driver(), cuda_driver());
  EXPECT_EQ(&open_cuda_driver(), cuda_driver());
}

}  // namespace
}  // namespace fpt
