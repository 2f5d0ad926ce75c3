// SPDX-License-Identifier: MIT
/// What a call must leave as it found it: the floating-point environment and the OpenMP team size of the caller.
#pragma once

#include <cfenv>
#include <cstdint>

#include "ftn_pytorch.h"

namespace fpt {

/// Registers of the floating-point unit. On x86-64 read and written directly (1 ns; fegetenv and fesetenv take 100).
struct FloatingPoint {
#if defined(__x86_64__)
  uint32_t mxcsr;
  uint16_t control;
  uint16_t status;
#elif defined(__aarch64__)
  uint64_t control;
  uint64_t status;
#else
  fenv_t environment;
#endif
};

/// Default environment of C and Python while it lives, the caller's own again afterwards.
///
/// Python and torch compute with masked exceptions, and some of their libraries divide by zero while they are being
/// imported. A program built with -ffpe-trap dies there, and one linked with -ffast-math gets other numbers than plain
/// Python, because flush-to-zero is a mode of the thread.
///
/// Traps and flush-to-zero are also modes of the worker threads of an OpenMP pool that the caller shares with torch.
/// Where the caller has one of them and such a pool can exist, the workers are treated as the caller's thread is, in a
/// parallel region before the call and in one after it: they are the program's, and torch must not compute with them.
///
/// The OpenMP team size is restored because torch.set_num_threads, and imports, change it for the whole program. What
/// they have set holds again in the next call.
class FPT_API HostState {
 public:
  HostState() noexcept;
  ~HostState();
  HostState(const HostState&) = delete;
  HostState& operator=(const HostState&) = delete;

 private:
  FloatingPoint saved_;
  int team_size_;
  bool workers_changed_ = false;
};

/// The environment and team size of the caller while it lives, inside a HostState of this thread: for procedures of the
/// caller that Python calls. The caller finds the sticky flags that they have raised. Does nothing outside.
class FPT_API CallerState {
 public:
  CallerState() noexcept;
  ~CallerState();
  CallerState(const CallerState&) = delete;
  CallerState& operator=(const CallerState&) = delete;

 private:
  FloatingPoint saved_;
  int team_size_;
};

/// Whether the call in progress on this thread is inside another one: Python has called back. Inside a HostState.
FPT_API bool is_nested_call() noexcept;

/// One line for diagnosis: which exceptions trap, rounding, flush-to-zero. Of the caller, so ask before HostState.
const char* floating_point_mode() noexcept;

/// Team size of the next OpenMP region of this thread, 0 when the process has no OpenMP runtime.
int openmp_team_size() noexcept;

}  // namespace fpt
