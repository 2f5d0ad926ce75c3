// SPDX-License-Identifier: MIT
#include "base/threads.hpp"

#include <atomic>
#include <limits>

#include "base/error.hpp"

namespace fpt {
namespace {

std::atomic<int64_t> wanted{0};

}  // namespace

int64_t wanted_threads() noexcept { return wanted; }

void want_threads(int64_t n) {
  if (n < 1 || n > std::numeric_limits<int32_t>::max())
    fail(FPT_ERR_ARGUMENT, "the number of threads is ", n, "; it must be at least 1, and an integer of 32 bits");
  wanted = n;
}

}  // namespace fpt
