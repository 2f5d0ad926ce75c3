// SPDX-License-Identifier: MIT
/// Sums and averages over the ranks of an MPI communicator of the program. Knows nothing of Python.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "base/mpi_ranks.hpp"
#include "ftn_pytorch.h"

namespace fpt {

/// What becomes of the numbers of all ranks. Of two numbers, neither of which is NaN, the larger one is taken.
enum class Reduction : std::int8_t { sum, largest };

/// Which call of a network a sum belongs to. They count from 1 on; sums of call 0 are not counted.
struct CallOfNetwork {
  std::int64_t call = 0, network = 0;
};

/// The sums of one communicator. From threads that may call MPI; one call at a time, others wait.
class MpiSum : public MpiRanks {
 public:
  /// piece_bytes: of what is summed at a time, less than 2^31 numbers, the same on all ranks; tests make it small.
  FPT_API MpiSum(int communicator, double limit_seconds, std::int64_t piece_bytes = std::int64_t{1} << 30);

  /// Replace numbers in host memory by their averages over all ranks, which must all call this with the same types and
  /// counts. The averages are the same bits on all ranks: MPI requires that (MPI 3.1, 5.9.6).
  ///
  /// values: contiguous, owned by the caller. count: of numbers. dtype: FPT_FLOAT32, FPT_FLOAT64, FPT_COMPLEX64,
  /// FPT_COMPLEX128, or FPT_FLOAT16 and FPT_BFLOAT16, which are summed in single precision; FPT_ERR_DTYPE for others.
  /// network: number of what is averaged, the same on all ranks; each has a counter of calls, which goes with the sum.
  /// 0 is what all_reduce_mean averages: failures name that, or average_gradients.
  /// FPT_ERR_PYTHON, on all ranks, if they are in different calls; if a rank does not come within the limit, or if MPI
  /// fails, after which nothing more can be averaged. Then `values` are as before.
  FPT_API void average(void* values, std::int64_t count, int dtype, std::int64_t network = 0);

  /// Replace numbers of FPT_FLOAT32, FPT_FLOAT64 or FPT_INT64 by their sums over all ranks, or by the largest of them,
  /// none of which may be NaN. All ranks must call this with the same type, count and reduction. Failures as above.
  /// purpose: what texts call it; lives as long as the call.
  FPT_API void combine(void* values, std::int64_t count, int dtype, Reduction reduction, const char* purpose,
                       CallOfNetwork call = {});

  /// The numbers of all ranks, one rank after the other; all give as many.
  std::vector<double> gather(const std::vector<double>& mine, const char* purpose);

  /// Count a call that has failed before it averaged: the next average tells all ranks of it.
  FPT_API void skip(std::int64_t network = 0);

 private:
  template <class Number>
  void reduce(Number* numbers, std::size_t count, Reduction reduction = Reduction::sum, CallOfNetwork call = {});
  void call_roll();
  [[noreturn]] void tell_apart(int mine);

  std::int64_t piece_bytes_;
  const char* purpose_ = nullptr;  ///< what failures name
  std::mutex mutex_;
  std::map<std::int64_t, std::int64_t> calls_;
};

}  // namespace fpt
