// SPDX-License-Identifier: MIT
/// The current CUDA context of the caller. torch leaves the primary context of its GPU current, and the next kernel of
/// a program with a context of its own would fail.
#pragma once

#include "base/cuda_driver.hpp"

namespace fpt {

/// The driver if the process has it. A call in which it is first seen is treated as if it had been known before.
const CudaDriver* cuda_driver_in_call() noexcept;

/// The caller's context around a call, as long as this lives; one inside another does nothing. Costs a look at a
/// pointer where the process has no CUDA.
class FPT_API CallerContext {
 public:
  CallerContext() noexcept;
  ~CallerContext();
  CallerContext(const CallerContext&) = delete;
  CallerContext& operator=(const CallerContext&) = delete;
};

/// How many threads have called since the process has CUDA; one that has ended counts.
FPT_API int threads_with_cuda() noexcept;

/// The caller's context is current while this lives, inside a call: for procedures of the caller.
class FPT_API CallerContextAgain {
 public:
  CallerContextAgain() noexcept;
  ~CallerContextAgain();
  CallerContextAgain(const CallerContextAgain&) = delete;
  CallerContextAgain& operator=(const CallerContextAgain&) = delete;

 private:
  CudaContext inside_;
};

/// Make the primary context of a GPU, which is torch's, current on this thread. Runtimes of OpenACC and OpenMP adopt
/// the context that is current when they start. FPT_ERR_DEVICE.
void make_primary_context_current(int gpu);

/// A CUDA stream that the program has chosen for the calls of a module.
struct ChosenStream {
  void* stream = nullptr;  ///< cudaStream_t, null for the default one
  bool is_chosen = false;  ///< else calls work on torch's current stream
  bool waits = true;       ///< calls with arrays on a device return when the work is done
};

/// The CUDA stream of a queue of OpenACC (`async(1)`), by the runtime that the process has. FPT_ERR_DEVICE.
void* stream_of_queue(int queue);

}  // namespace fpt
