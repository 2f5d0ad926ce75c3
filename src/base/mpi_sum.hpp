// SPDX-License-Identifier: MIT
/// Averages over the ranks of an MPI communicator of the program. Knows nothing of Python.
///
/// MPI is called by the names of its Fortran bindings in the libraries that the process has loaded, as
/// ranks/communicator.py does: nothing is built against an MPI, and no constant of an implementation is needed. What
/// goes over the wire is that of ranks/sums.py, so ranks with Python and ranks without it can average together.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "ftn_pytorch.h"

namespace fpt {

/// What becomes of the numbers of all ranks. Of two numbers, neither of which is NaN, the larger one is taken.
enum class Reduction : std::int8_t { sum, largest };

/// What does it with numbers of FPT_FLOAT32, FPT_FLOAT64 or FPT_INT64, for MPI_Op_create; null for other types.
fpt_mpi_function function_of(Reduction reduction, int dtype) noexcept;

/// The averages of one communicator. From threads that may call MPI; one call at a time, others wait.
class MpiSum {
 public:
  /// communicator: integer handle of Fortran. limit_seconds: how long a rank waits for the others in a call.
  ///
  /// Asks for rank and size, which other ranks need not do. FPT_ERR_ARGUMENT if this process has no MPI that could be
  /// called, if MPI is not running, or if the handle is that of no intra-communicator.
  /// piece_bytes: of what is summed at a time, less than 2^31 numbers, the same on all ranks; tests make it small.
  FPT_API MpiSum(int communicator, double limit_seconds, std::int64_t piece_bytes = std::int64_t{1} << 30);

  int rank() const noexcept { return rank_; }
  int size() const noexcept { return size_; }

  /// Replace numbers in host memory by their averages over all ranks, which must all call this with the same types and
  /// counts. The averages are the same bits on all ranks: MPI requires that (MPI 3.1, 5.9.6).
  ///
  /// values: contiguous, owned by the caller. count: of numbers. dtype: FPT_FLOAT32, FPT_FLOAT64, FPT_COMPLEX64,
  /// FPT_COMPLEX128, or FPT_FLOAT16 and FPT_BFLOAT16, which are summed in single precision; FPT_ERR_DTYPE for others.
  /// network: number of what is averaged, the same on all ranks; each has a counter of calls, which goes with the sum.
  /// 0 is what
  /// all_reduce_mean averages: failures name that, or average_gradients.
  /// FPT_ERR_PYTHON, on all ranks, if they are in different calls; if a rank does not come within the limit, or if MPI
  /// fails, after which nothing more can be averaged. Then `values` are as before.
  FPT_API void average(void* values, std::int64_t count, int dtype, std::int64_t network = 0);

  /// Replace numbers of FPT_FLOAT32, FPT_FLOAT64 or FPT_INT64 by their sums over all ranks, or by the largest of them,
  /// none of which may be NaN. All ranks must call this with the same type, count and reduction. FPT_ERR_PYTHON as
  /// above, but calls are not counted. purpose: what texts call it; lives as long as the call.
  void combine(void* values, std::int64_t count, int dtype, Reduction reduction, const char* purpose);

  /// The numbers of all ranks, one rank after the other; all give as many.
  std::vector<double> gather(const std::vector<double>& mine, const char* purpose);

  /// Count a call that has failed before it averaged: the next average tells all ranks of it.
  FPT_API void skip(std::int64_t network = 0);

 private:
  struct Pending;

  template <class Number>
  void reduce(std::vector<Number>& numbers, Reduction reduction = Reduction::sum);
  void wait(std::unique_ptr<Pending>& pending);
  void call_roll();
  double process_of(int rank) const;
  int rank_that_ended() const;
  void require_same_call(int mine, const double digits[]);
  [[noreturn]] void give_up(std::unique_ptr<Pending>& pending, const std::string& text);

  int communicator_;
  double limit_;
  int rank_ = 0;
  int size_ = 1;
  std::int64_t piece_bytes_;
  const char* purpose_ = "load(..., communicator=)";  ///< what failures name
  std::mutex mutex_;
  std::map<std::int64_t, std::int64_t> calls_;
  std::vector<double> roll_;  ///< of each rank: node, process
  std::string failure_;
};

}  // namespace fpt
