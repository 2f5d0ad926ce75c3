// SPDX-License-Identifier: MIT
/// The interpreter lock of a thread that keeps it between its calls, see fpt_keep_lock(). Knows nothing of Python.
#pragma once

#include "ftn_pytorch.h"

namespace fpt {

/// How such a thread lets go of the lock for a call, and takes it again.
struct KeptLock {
  /// What take_again() wants; null if the thread does not hold the lock just now.
  void* (*let_go)() noexcept;
  void (*take_again)(void* let_go) noexcept;
};

/// Of this thread if it keeps the lock, else null. initial-exec: read in each call.
FPT_API extern __thread const KeptLock* kept_lock __attribute__((tls_model("initial-exec")));

/// Around a call: a thread that keeps the lock lets go of it, so that in a call all is as on any other thread. torch
/// refuses backward to those who hold it, and threads of scripts run meanwhile.
class WithoutKeptLock {
 public:
  WithoutKeptLock() noexcept : lock_(kept_lock), let_go_(lock_ ? lock_->let_go() : nullptr) {}
  ~WithoutKeptLock() {
    if (let_go_) lock_->take_again(let_go_);
  }
  WithoutKeptLock(const WithoutKeptLock&) = delete;
  WithoutKeptLock& operator=(const WithoutKeptLock&) = delete;

 private:
  const KeptLock* const lock_;
  void* const let_go_;
};

}  // namespace fpt
