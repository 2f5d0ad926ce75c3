// SPDX-License-Identifier: MIT
/// What a recorded function averages over the ranks of the program, by the MPI of the program.
#pragma once

#include <ATen/core/boxing/KernelFunction.h>

#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "base/mpi_sum.hpp"

namespace fpt::direct {

/// The averages of one function. A call that fails before it averages counts, as in ranks/failed_calls.py: the other
/// ranks wait in it, and would take the gradients of the next call for those of this one.
class OverRanks {
 public:
  /// sum: null without a communicator. function: what texts call it.
  OverRanks(std::shared_ptr<MpiSum> sum, std::string function) : sum_(std::move(sum)), function_(std::move(function)) {}

  /// The operator ftn_pytorch::all_reduce_mean: its arguments on the stack become its result. Of its number only what
  /// is above 32 bits counts, which tells the network. FPT_ERR_ARGUMENT without a communicator; what MpiSum throws.
  void average(c10::Stack& stack);

  /// One call, from its begin on.
  class Call {
   public:
    explicit Call(OverRanks& of) : of_(of), failures_(std::uncaught_exceptions()) { of_.begin(); }
    ~Call() {
      if (std::uncaught_exceptions() > failures_) of_.count_failure();
    }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

   private:
    OverRanks& of_;
    int failures_;
  };

 private:
  void begin();
  void count_failure() noexcept;

  std::shared_ptr<MpiSum> sum_;
  std::string function_;
  std::set<int64_t> done_;      ///< networks that this call has averaged
  std::set<int64_t> networks_;  ///< that it has ever averaged
  std::mutex mutex_;
  int64_t failed_ = 0;  ///< calls that failed before it was known what is averaged
};

}  // namespace fpt::direct
