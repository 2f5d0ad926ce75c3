// SPDX-License-Identifier: MIT
#include "plugin/recording/over_ranks.hpp"

#include <ATen/ATen.h>

#include "base/error.hpp"
#include "plugin/tensors.hpp"

namespace fpt::direct {

void OverRanks::average(c10::Stack& stack) {
  const int64_t network = stack.back().toInt() >> 32;
  stack.pop_back();
  const at::Tensor given = stack.back().toTensor();
  if (!sum_)
    fail(FPT_ERR_ARGUMENT, function_,
         " averages over ranks: give the communicator of the ranks to load (communicator=MPI_COMM_WORLD)");
  {
    const std::lock_guard lock(mutex_);
    if (networks_.insert(network).second)
      for (int64_t call = 0; call < failed_; ++call) sum_->skip(network);
    done_.insert(network);
  }
  const at::Tensor host = given.to(at::kCPU).resolve_conj().resolve_neg();
  at::Tensor mean = host.clone(at::MemoryFormat::Contiguous);
  sum_->average(mean.data_ptr(), mean.numel(), dtype_of(mean.scalar_type()), network);
  stack.back() = mean.to(given.device());
}

void OverRanks::begin() {
  if (!sum_) return;
  const std::lock_guard lock(mutex_);
  done_.clear();
}

void OverRanks::count_failure() noexcept {
  if (!sum_) return;
  const std::lock_guard lock(mutex_);
  if (networks_.empty()) ++failed_;
  for (const int64_t each : networks_)
    if (!done_.contains(each)) sum_->skip(each);
}

}  // namespace fpt::direct
