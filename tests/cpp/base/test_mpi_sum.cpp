// SPDX-License-Identifier: MIT
/// Averages with an MPI that is played: types, what goes over the wire, what is told. Real ranks: test_sums_mpi.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <limits>

#include "base/error.hpp"
#include "base/mpi_sum.hpp"
#include "base/narrow_floats.hpp"
#include "played_mpi.hpp"

namespace fpt {
namespace {

std::vector<std::string> sum_warnings;

class Sums : public testing::Test {
 protected:
  Sums() { played = &mpi_; }
  ~Sums() override { played = nullptr; }

  /// Rank 1 has the same numbers, and is in the same call: all is twice what this rank gives. But in the roll.
  void play_a_twin() {
    mpi_.others_single = [](float* sums, int count) {
      for (int i = 0; i < count; ++i) sums[i] *= 2;
    };
    mpi_.others_double = [this](double* sums, int count) {
      if (mpi_.counts.size() == 1) {  // the roll
        EXPECT_EQ(count, 4);
        EXPECT_EQ(sums[1], getpid());
        sums[2] = sums[0];
        sums[3] = process_;
        return;
      }
      for (int i = 0; i < count; ++i) sums[i] *= 2;
    };
  }

  template <class Call>
  void expect(const Call& call, fpt_status status, const std::string& text) {
    try {
      call();
      ADD_FAILURE() << "no failure: " << text;
    } catch (const Error& failure) {
      EXPECT_EQ(failure.status(), status);
      EXPECT_NE(failure.text().find(text), std::string::npos) << failure.text();
    }
  }

  PlayedMpi mpi_;
  double process_ = getpid();
};

/// What MPI does with two ranks, of which one gives twice as much.
template <class Number>
std::vector<Number> combined(PlayedMpi& mpi, int dtype, Reduction reduction) {
  Number numbers[] = {1, -5, 7}, others[] = {2, -6, 7};
  MpiSum(7, 10).combine(numbers, 3, dtype, reduction, "a test");
  int count = 3, type = 0;
  mpi.operation(others, numbers, &count, &type);
  return {numbers, numbers + 3};
}

template <class Number>
void expect_both(PlayedMpi& mpi, int dtype) {
  EXPECT_EQ(combined<Number>(mpi, dtype, Reduction::sum), (std::vector<Number>{3, -11, 14}));
  EXPECT_EQ(combined<Number>(mpi, dtype, Reduction::largest), (std::vector<Number>{2, -5, 7}));
}

TEST_F(Sums, AndTheLargestAreTakenInEachType) {
  expect_both<float>(mpi_, FPT_FLOAT32);
  expect_both<double>(mpi_, FPT_FLOAT64);
  expect_both<std::int64_t>(mpi_, FPT_INT64);
  expect([&] { combined<std::int32_t>(mpi_, FPT_INT32, Reduction::sum); }, FPT_ERR_DTYPE, "a test: sums over ranks");
}

TEST_F(Sums, AreAveragedInEachType) {
  play_a_twin();
  MpiSum sum(7, 10);
  EXPECT_EQ(sum.rank(), 0);
  EXPECT_EQ(sum.size(), 2);
  double doubles[] = {1, -2.5, 1e300};
  sum.average(doubles, 3, FPT_FLOAT64);
  EXPECT_EQ(doubles[1], -2.5);
  EXPECT_EQ(doubles[2], 1e300);
  EXPECT_EQ(mpi_.counts, (std::vector<int>{4, 3 + 32}));
  float pairs[] = {1, 2, 3, 4};
  sum.average(pairs, 2, FPT_COMPLEX64);
  EXPECT_EQ(pairs[3], 4);
  EXPECT_EQ(mpi_.counts.back(), 4 + 32);
  sum.average(doubles, 1, FPT_COMPLEX128);
  EXPECT_EQ(mpi_.counts.back(), 2 + 32);
  std::uint16_t half[] = {0x3c00, 0x0001, 0xfbff}, narrow[] = {0x3f80, 0xff7f};
  sum.average(half, 3, FPT_FLOAT16);
  sum.average(narrow, 2, FPT_BFLOAT16);
  EXPECT_EQ(half[1], 0x0001);
  EXPECT_EQ(half[2], 0xfbff) << "65504 is summed in single precision";
  EXPECT_EQ(narrow[0], 0x3f80);
  sum.average(nullptr, 0, FPT_FLOAT32);
  EXPECT_EQ(mpi_.counts.back(), 32);
}

TEST_F(Sums, OfOtherRanksAreAdded) {
  mpi_.others_single = [](float* sums, int count) {
    for (int i = 0; i < count; ++i) sums[i] += i < 2 ? 5 : sums[i];
  };
  MpiSum sum(7, 10);
  float numbers[] = {1, 2};
  sum.average(numbers, 2, FPT_FLOAT32);
  EXPECT_EQ(numbers[0], 3);
  EXPECT_EQ(numbers[1], 3.5);
}

TEST_F(Sums, AreMadeInPieces) {
  play_a_twin();
  MpiSum sum(7, 10, 10 * sizeof(double));
  std::vector<double> numbers(25, 1.5);
  sum.average(numbers.data(), 25, FPT_FLOAT64);
  EXPECT_EQ(mpi_.counts, (std::vector<int>{4, 10, 10, 10, 10, 10, 7}));
  for (const double each : numbers) EXPECT_EQ(each, 1.5);
}

TEST_F(Sums, OfOneRankNeedNoMpi) {
  mpi_.size = 1;
  MpiSum sum(7, 10);
  double number = 3;
  sum.average(&number, 1, FPT_FLOAT64);
  EXPECT_EQ(number, 3);
  EXPECT_TRUE(mpi_.counts.empty());
}

TEST_F(Sums, OfOtherTypesAreRefused) {
  MpiSum sum(7, 10);
  std::int64_t number = 3;
  expect([&] { sum.average(&number, 1, FPT_INT64); }, FPT_ERR_DTYPE, "all_reduce_mean: real and complex numbers");
}

TEST_F(Sums, TellWhoIsInAnotherCall) {
  for (const bool is_ahead : {true, false}) {
    play_a_twin();
    mpi_.counts.clear();
    MpiSum sum(7, 10);
    if (!is_ahead) sum.skip(3);
    const int mine = (3 * 97 + (is_ahead ? 1 : 2)) % 251, there = (3 * 97 + (is_ahead ? 2 : 1)) % 251;
    mpi_.others_single = [&](float* sums, int count) {
      EXPECT_EQ(count, 2 + 32);
      EXPECT_EQ(sums[2 + mine % 16], 1);
      EXPECT_EQ(sums[2 + 16 + mine / 16], 1);
      sums[2 + there % 16] += 1;
      sums[2 + 16 + there / 16] += 1;
      mpi_.others_double = [&](double* each, int ranks) {
        EXPECT_EQ(ranks, 2);
        EXPECT_EQ(each[0], mine);
        each[1] = there;
      };
    };
    float numbers[] = {1, 2};
    expect([&] { sum.average(numbers, 2, FPT_FLOAT32, 3); }, FPT_ERR_PYTHON,
           is_ahead
               ? "average_gradients: the ranks are in different calls of it: rank 1 is 1 ahead of rank 0. As a rule"
               : "average_gradients: the ranks are in different calls of it: rank 1 is 1 behind rank 0. As a rule");
    EXPECT_EQ(numbers[0], 1);
    EXPECT_EQ(numbers[1], 2);
  }
}

TEST_F(Sums, EndWhereARankDoesNotCome) {
  const std::pair<std::int64_t, std::string> names[] = {{0, "all_reduce_mean"}, {1, "average_gradients"}};
  for (const auto& [network, name] : names) {
    mpi_.arrives = false;
    MpiSum sum(7, 0.05);
    double number = 3;
    const auto average = [&, averaged = network] { sum.average(&number, 1, FPT_FLOAT64, averaged); };
    sum_warnings.clear();
    set_warning_handler([](const char* text, int64_t length) { sum_warnings.emplace_back(text, length); });
    expect(average, FPT_ERR_PYTHON, concat("rank 0 of 2 has waited 0.05 s in ", name, " for the others"));
    set_warning_handler(nullptr);
    ASSERT_EQ(sum_warnings.size(), 1u) << "it says so before, and once";
    EXPECT_NE(sum_warnings[0].find(concat("rank 0 of 2 has waited 0.025 s in ", name, " for others. All ranks of")),
              std::string::npos)
        << sum_warnings[0];
    EXPECT_EQ(number, 3);
    mpi_.arrives = true;
    expect(average, FPT_ERR_PYTHON, concat(name, " cannot be done any more: earlier, rank 0 of 2 has waited"));
  }
}

TEST_F(Sums, AreCountedWhereTheCallIsTold) {
  play_a_twin();
  MpiSum sum(7, 10);
  std::int64_t number = 3;
  sum.combine(&number, 1, FPT_INT64, Reduction::largest, "a test", {5, -1});
  EXPECT_EQ(mpi_.counts, (std::vector<int>{4, 1 + 32}));
  mpi_.others_double = [](double* sums, int count) {
    if (count == 2) sums[1] = (5 - 97 + 251) % 251;  // the counters of both
    if (count > 2) sums[1 + 15] += 1;                // a digit that this rank has left at zero
  };
  double real = 3;
  expect([&] { sum.combine(&real, 1, FPT_FLOAT64, Reduction::sum, "a test", {6, -1}); }, FPT_ERR_PYTHON,
         "a test: the ranks are in different calls of it: rank 1 is 1 behind rank 0. As a rule");
  EXPECT_EQ(real, 3);
}

TEST_F(Sums, LetOthersLookMeanwhile) {
  mpi_.arrives = false;
  MpiSum sum(7, 3600);
  int looks = 0;
  sum.call_meanwhile([&] {
    if (++looks == 2) throw looks;
  });
  double number = 3;
  EXPECT_THROW(sum.average(&number, 1, FPT_FLOAT64), int);
  mpi_.arrives = true;
  expect([&] { sum.average(&number, 1, FPT_FLOAT64); }, FPT_ERR_PYTHON, "earlier, all_reduce_mean was interrupted");
  EXPECT_FALSE(sum.is_usable());
}

TEST_F(Sums, EndWhereSomebodyGivesUp) {
  MpiSum sum(7, 10);
  sum.give_up("rank 1 was late");
  double number = 3;
  expect([&] { sum.average(&number, 1, FPT_FLOAT64); }, FPT_ERR_PYTHON, "any more: earlier, rank 1 was late");
}

TEST_F(Sums, TellARankThatHasEnded) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) _exit(0);
  process_ = child;  // nobody has waited for it
  play_a_twin();
  MpiSum sum(7, 3600);
  double number = 3;
  sum.average(&number, 1, FPT_FLOAT64);
  mpi_.arrives = false;
  expect([&] { sum.average(&number, 1, FPT_FLOAT64); }, FPT_ERR_PYTHON,
         concat("rank 1 of 2, process ", child, " of this node, has ended while rank 0 waited for it"));
}

TEST_F(Sums, TellWhatMpiAnswers) {
  MpiSum sum(7, 10);
  mpi_.code = 13;
  double number = 3;
  expect([&] { sum.average(&number, 1, FPT_FLOAT64); }, FPT_ERR_PYTHON, "mpi_iallreduce has failed with error code 13");
  expect([] { MpiSum(8, 10); }, FPT_ERR_PYTHON, "mpi_comm_size has failed with error code 5");
}

TEST_F(Sums, NeedTheBindingsOfFortran) {
  expect([] { call_mpi("a test", "mpi_fly_", {}); }, FPT_ERR_ARGUMENT,
         "a test: there is no mpi_fly_ in this process, a Fortran binding of MPI. Either the program does not use MPI");
}

TEST_F(Sums, NeedAnMpiThatRuns) {
  mpi_.finalised = 1;
  expect([] { MpiSum(7, 10); }, FPT_ERR_ARGUMENT, "MPI_Finalize has been called");
  mpi_.initialised = 0;
  expect([] { MpiSum(7, 10); }, FPT_ERR_ARGUMENT, "MPI_Init has not been called yet");
  mpi_.has_wide_integers = true;
  expect([] { MpiSum(7, 10); }, FPT_ERR_ARGUMENT, "has integers of 8 bytes (ILP64)");
}

TEST_F(Sums, NeedACommunicatorOfThisRank) {
  for (const int handle : {null_handle, inter_handle})
    expect(
        [&] { MpiSum(handle, 10); }, FPT_ERR_ARGUMENT,
        concat("load(..., communicator=) is the handle ", handle, ", which is that of MPI_COMM_NULL or of an inter-"));
}

TEST_F(Sums, HaveOneOperationInAProcess) {
  const auto average = [] {
    double number = 3;
    MpiSum(7, 10).average(&number, 1, FPT_FLOAT64);
  };
  play_a_twin();
  average();
  const std::size_t before = operations_made.size();
  for (int i = 0; i < 3; ++i) {
    mpi_.counts.clear();
    average();
  }
  EXPECT_EQ(operations_made.size(), before);
}

TEST(NarrowFloats, GoThroughSinglePrecision) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto narrow = static_cast<std::uint16_t>(bits);
    const float half = float_of_half(narrow), brain = float_of_bfloat16(narrow);
    EXPECT_TRUE(std::isnan(half) || half_of_float(half) == narrow) << bits;
    EXPECT_TRUE(std::isnan(brain) || bfloat16_of_float(brain) == narrow) << bits;
    EXPECT_EQ(std::isnan(half), std::isnan(float_of_half(half_of_float(half)))) << bits;
  }
  EXPECT_EQ(float_of_half(0x3555), 0.333251953125f);
  EXPECT_EQ(half_of_float(1 + 0x1p-11f), 0x3c00) << "a tie goes to the even one";
  EXPECT_EQ(half_of_float(1 + 0x3p-11f), 0x3c02);
  EXPECT_EQ(half_of_float(65519.0f), 0x7bff);
  EXPECT_EQ(half_of_float(-65520.0f), 0xfc00);
  EXPECT_EQ(half_of_float(0x1p-25f), 0x0000);
  EXPECT_EQ(half_of_float(0x3p-25f), 0x0002);
  EXPECT_EQ(half_of_float(0x1.ffcp-15f), 0x0400) << "rounded up to the smallest normal number";
  EXPECT_EQ(bfloat16_of_float(1 + 0x1p-8f), 0x3f80);
  EXPECT_EQ(bfloat16_of_float(1 + 0x3p-8f), 0x3f82);
  EXPECT_EQ(bfloat16_of_float(std::numeric_limits<float>::max()), 0x7f80);
}

}  // namespace
}  // namespace fpt
