// SPDX-License-Identifier: MIT
/// The operator of averages over ranks, as a recording without Python calls it. MPI is played.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "base/error.hpp"
#include "played_mpi.hpp"
#include "plugin/recording/over_ranks.hpp"

namespace fpt::direct {
namespace {

constexpr int64_t network = 5;

class OverTwoRanks : public testing::Test {
 protected:
  OverTwoRanks() {
    played = &mpi_;
    sum_ = std::make_shared<MpiSum>(7, 10.0);
    mpi_.others_single = [this](float* sums, int count) {
      mine_.assign(sums + count - 32, sums + count);
      for (int i = 0; i < count; ++i) sums[i] *= 2;
    };
    sum_ = std::make_shared<MpiSum>(7, 10.0);
  }
  ~OverTwoRanks() override { played = nullptr; }

  static at::Tensor average(OverRanks& over, const at::Tensor& given) {
    torch::jit::Stack stack{given, network << 32 | 99};
    over.average(stack);
    EXPECT_EQ(stack.size(), 1u);
    return stack.back().toTensor();
  }
  /// The counter of calls that went with the last sum.
  int counter() const {
    int found = 0;
    for (int digit = 0; digit < 16; ++digit) {
      if (mine_[static_cast<std::size_t>(digit)] == 1) found += digit;
      if (mine_[static_cast<std::size_t>(16 + digit)] == 1) found += 16 * digit;
    }
    return found;
  }
  static int counter_of_call(int64_t number) { return static_cast<int>((number + 97 * network) % 251); }

  PlayedMpi mpi_;
  std::vector<float> mine_;
  std::shared_ptr<MpiSum> sum_;
};

TEST_F(OverTwoRanks, TensorsAreAveragedAndLeftAsTheyAre) {
  OverRanks over(sum_, "step");
  const at::Tensor given = at::arange(6, at::kFloat).reshape({2, 3}).t();
  const at::Tensor mean = average(over, given);
  EXPECT_TRUE(at::equal(mean, given));
  EXPECT_NE(mean.data_ptr(), given.data_ptr());
  EXPECT_EQ(counter(), counter_of_call(1));
  const at::Tensor half = average(over, at::full({2}, 1.5, at::kHalf));
  EXPECT_EQ(half.scalar_type(), at::kHalf);
  EXPECT_EQ(half[0].item<float>(), 1.5f);
  EXPECT_EQ(counter(), counter_of_call(2));
  EXPECT_THROW(average(over, at::ones({2}, at::kLong)), Error);
}

TEST_F(OverTwoRanks, CallsThatFailBeforeTheyAverageCount) {
  OverRanks over(sum_, "step");
  const auto call = [&over](bool averages, bool fails) {
    try {
      const OverRanks::Call made(over);
      if (averages) average(over, at::ones({2}));
      if (fails) throw std::runtime_error("");
    } catch (const std::runtime_error&) {
    }
  };
  call(false, true);
  call(true, false);
  EXPECT_EQ(counter(), counter_of_call(2)) << "also where it was not known yet what is averaged";
  call(true, true);
  EXPECT_EQ(counter(), counter_of_call(3));
  call(true, false);
  EXPECT_EQ(counter(), counter_of_call(4)) << "after the average nothing is shifted";
  call(false, true);
  call(false, false);
  call(true, false);
  EXPECT_EQ(counter(), counter_of_call(6));
}

TEST(OverNoRanks, WhatAveragesNeedsACommunicator) {
  OverRanks over(nullptr, "step of net");
  torch::jit::Stack stack{at::ones({2}), int64_t{0}};
  try {
    const OverRanks::Call call(over);
    over.average(stack);
    ADD_FAILURE();
  } catch (const Error& failure) {
    EXPECT_EQ(failure.status(), FPT_ERR_ARGUMENT);
    EXPECT_NE(failure.text().find("step of net averages over ranks: give the communicator"), std::string::npos);
  }
}

}  // namespace
}  // namespace fpt::direct
