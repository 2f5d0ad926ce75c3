// SPDX-License-Identifier: MIT
#include "base/cuda_context.hpp"

#include <dlfcn.h>

#include <atomic>

#include "base/error.hpp"

namespace fpt {
namespace {

// initial-exec: read in each call, and the general model would call a function for it
__attribute__((tls_model("initial-exec"))) thread_local int nested = 0;
// Of the outermost call of this thread.
__attribute__((tls_model("initial-exec"))) thread_local CudaContext of_caller = nullptr;
thread_local bool is_counted = false;
std::atomic<int> threads = 0;

/// torch's context and another one on the same GPU: the GPU changes between them in every call.
void warn_of_two(CudaContext one) noexcept {
  static std::atomic<bool> warned{false};
  const CudaDriver& driver = *known_cuda_driver();
  const std::optional<int> gpu = gpu_of_context();
  if (!gpu || driver.set_context(one) != 0 || gpu_of_context() != gpu || warned.exchange(true)) return;
  warn(concat("the program uses GPU ", *gpu,
              " in a context of its own and torch in another one. Each change between them "
              "costs about 0.3 ms: call ftn_pytorch_init(device=\"cuda:",
              *gpu, "\") before the first OpenACC or OpenMP region, so that both use one"));
}

}  // namespace

const CudaDriver* cuda_driver_in_call() noexcept {
  if (const CudaDriver* driver = known_cuda_driver()) return driver;
  const CudaDriver* driver = cuda_driver();
  if (driver && nested > 0) of_caller = current_context();
  return driver;
}

CallerContext::CallerContext() noexcept {
  if (nested++ > 0 || !known_cuda_driver()) return;
  of_caller = current_context();
  if (!is_counted) {
    is_counted = true;
    ++threads;
  }
}

int threads_with_cuda() noexcept { return threads; }

CallerContext::~CallerContext() {
  if (--nested > 0 || !of_caller) return;
  CudaContext before = of_caller, now = current_context();
  of_caller = nullptr;
  if (now == before) return;
  if (now) warn_of_two(before);
  known_cuda_driver()->set_context(before);
}

CallerContextAgain::CallerContextAgain() noexcept : inside_(current_context()) {
  if (nested > 0 && of_caller && inside_ != of_caller) known_cuda_driver()->set_context(of_caller);
}

CallerContextAgain::~CallerContextAgain() {
  if (nested == 0) return;
  CudaContext now = current_context();
  of_caller = now;
  if (inside_ && now != inside_) known_cuda_driver()->set_context(inside_);
}

void make_primary_context_current(int gpu) {
  const CudaDriver& driver = open_cuda_driver();
  CudaContext context = nullptr;
  if (!driver.retain_primary || !driver.set_context || driver.retain_primary(&context, gpu) != 0 ||
      driver.set_context(context) != 0)
    fail(FPT_ERR_DEVICE, "GPU ", gpu, " cannot be used: the driver of CUDA gives no primary context of it");
}

void* stream_of_queue(int queue) {
  // OpenACC 2.7, A.2.1.3
  const auto get_stream = reinterpret_cast<void* (*)(int)>(dlsym(RTLD_DEFAULT, "acc_get_cuda_stream"));
  if (!get_stream) fail(FPT_ERR_DEVICE, "this program has no runtime of OpenACC that knows queue ", queue);
  void* stream = get_stream(queue);
  if (!stream)
    fail(FPT_ERR_DEVICE, "queue ", queue, " of OpenACC has no CUDA stream: use it in a region on a GPU before");
  return stream;
}

}  // namespace fpt
