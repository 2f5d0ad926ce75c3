// SPDX-License-Identifier: MIT
/// Ranks of a real MPI average: mpirun -n 3 test_sums_mpi <case>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/mpi_sum.hpp"

extern "C" {
void mpi_init_(int* code);
void mpi_finalize_(int* code);
void mpi_comm_get_parent_(int* parent, int* code);
void mpi_bcast_(void* values, int* count, int* type, int* root, int* communicator, int* code);
void mpi_type_create_f90_integer_(int* digits, int* type, int* code);
void mpi_send_(void* values, int* count, int* type, int* to, int* tag, int* communicator, int* code);
void mpi_recv_(void* values, int* count, int* type, int* from, int* tag, int* communicator, int* status, int* code);
}

namespace {

void expect(bool is_true, const std::string& what) {
  if (is_true) return;
  std::fprintf(stderr, "failed: %s\n", what.c_str());
  std::_Exit(1);
}

template <class Call>
void expect_failure(const Call& call, const std::string& text) {
  try {
    call();
  } catch (const fpt::Error& failure) {
    expect(failure.status() == FPT_ERR_PYTHON && failure.text().find(text) != std::string::npos, failure.text());
    return;
  }
  expect(false, "no failure: " + text);
}

void averages(fpt::MpiSum& sum, int communicator) {
  for (int count : {0, 2, 1000}) {
    std::vector<double> numbers(static_cast<std::size_t>(count)), expected = numbers;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      numbers[i] = 0.1 * sum.rank() + static_cast<double>(i);
      expected[i] = 0.05 * (sum.size() - 1) + static_cast<double>(i);
    }
    std::vector<float> single(numbers.begin(), numbers.end());
    sum.average(numbers.data(), count, FPT_FLOAT64, 1);
    sum.average(single.data(), count / 2, FPT_COMPLEX64, 2);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      expect(std::abs(numbers[i] - expected[i]) < 1e-12, "doubles");
      expect(std::abs(single[i] - static_cast<float>(expected[i])) < 1e-3f, "complex numbers");
    }
    std::vector<int64_t> integers(static_cast<std::size_t>(count), 1 + (int64_t{1} << 40) * sum.rank());
    sum.combine(integers.data(), count, FPT_INT64, fpt::Reduction::sum, "a sum");
    std::vector<float> largest(3, static_cast<float>(sum.rank()));
    sum.combine(largest.data(), 3, FPT_FLOAT32, fpt::Reduction::largest, "the largest");
    for (const float each : largest) expect(each == static_cast<float>(sum.size() - 1), "the largest");
    const int64_t pairs = int64_t{sum.size()} * (sum.size() - 1) / 2;
    for (const int64_t each : integers) expect(each == sum.size() + (int64_t{1} << 40) * pairs, "integers");
    const std::vector<double> all = sum.gather({1.0 * sum.rank(), 0.5}, "what each has");
    for (int rank = 0; rank < sum.size(); ++rank)
      expect(all[2 * static_cast<std::size_t>(rank)] == rank && all[2 * static_cast<std::size_t>(rank) + 1] == 0.5,
             "what each rank gives");
    // the bits of rank 0
    std::vector<double> first = numbers;
    int digits = 9, type = 0, root = 0, code = 0, words = 2 * count;
    mpi_type_create_f90_integer_(&digits, &type, &code);
    mpi_bcast_(first.data(), &words, &type, &root, &communicator, &code);
    expect(first == numbers, "the bits are the same on all ranks");
  }
}

void apart(fpt::MpiSum& sum) {
  double number = sum.rank();
  sum.average(&number, 1, FPT_FLOAT64);
  if (sum.rank() == 1) sum.skip();
  const double before = number;
  expect_failure([&] { sum.average(&number, 1, FPT_FLOAT64); }, "rank 1 is 1 ahead of rank 0. As a rule");
  expect(number == before, "nothing is averaged");
}

/// A message of one rank to another one.
void tell(int from, int to, const fpt::MpiSum& sum, int communicator) {
  int digits = 9, type = 0, code = 0, word = 0, count = 1, tag = 7, status[32];
  mpi_type_create_f90_integer_(&digits, &type, &code);
  if (sum.rank() == from) mpi_send_(&word, &count, &type, &to, &tag, &communicator, &code);
  if (sum.rank() == to) mpi_recv_(&word, &count, &type, &from, &tag, &communicator, status, &code);
}

void missing(fpt::MpiSum& sum, int communicator) {
  double number = 1;
  if (sum.rank() != 1) {
    expect_failure([&] { sum.average(&number, 1, FPT_FLOAT64); }, "has waited 1 s in all_reduce_mean for the others");
    expect_failure([&] { sum.average(&number, 1, FPT_FLOAT64); }, "cannot be done any more");
  }
  // the first rank that ends takes the others along, and rank 0 is the first
  for (int rank = 2; rank < sum.size(); ++rank) tell(rank, 0, sum, communicator);
  if (sum.rank() == 0) std::printf("rank 0 was told\n");
  std::fflush(stdout);
  for (int rank = 1; rank < sum.size(); ++rank) tell(0, rank, sum, communicator);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string chosen = argc > 1 ? argv[1] : "";
  int code = 0, null = 0;
  mpi_init_(&code);
  mpi_comm_get_parent_(&null, &code);
  // MPI_COMM_WORLD of Fortran is 0 in Open MPI, and MPI_COMM_NULL, which is no parent, is another number than that
  int world = null == 2 ? 0 : 0x44000000;
  fpt::MpiSum sum(world, chosen == "missing" ? 1 : 60, 1 << 10);
  if (chosen == "averages") averages(sum, world);
  if (chosen == "apart") apart(sum);
  if (chosen == "missing") {
    missing(sum, world);
    std::_Exit(0);  // what was begun cannot end
  }
  mpi_finalize_(&code);
  return 0;
}
