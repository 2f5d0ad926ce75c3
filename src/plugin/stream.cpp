// SPDX-License-Identifier: MIT
#include "plugin/stream.hpp"

#include <c10/core/impl/VirtualGuardImpl.h>
#include <dlfcn.h>

#include "base/error.hpp"

namespace fpt::direct {
namespace {

thread_local bool waits_here = true;

/// A function of libtorch's C shim (torch/csrc/inductor/aoti_torch/c/shim.h) in its library for CUDA; null without one.
/// The C++ functions for streams need the headers of CUDA.
template <class Function>
Function of_cuda_shim(const char* name) noexcept {
  void* library = dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_NOLOAD);
  return library ? reinterpret_cast<Function>(dlsym(library, name)) : nullptr;
}

int32_t (*remove_guard)(void* guard) = nullptr;

}  // namespace

void* enter_stream(void* stream, const std::optional<at::Device>& device, bool waits) {
  using Create = int32_t (*)(void* stream, int32_t gpu, void** guard);
  static const auto create = of_cuda_shim<Create>("aoti_torch_create_cuda_stream_guard");
  static const auto remove = remove_guard = of_cuda_shim<decltype(remove_guard)>("aoti_torch_delete_cuda_stream_guard");
  if (!create || !remove) fail(FPT_ERR_DEVICE, "this libtorch knows no streams of CUDA");
  const at::Device there = device ? *device : c10::impl::VirtualGuardImpl(at::kCUDA).getDevice();
  void* guard = nullptr;
  if (!there.is_cuda() || create(stream, there.index(), &guard) != 0)
    fail(FPT_ERR_DEVICE, "libtorch cannot work on this stream of ", there.str());
  waits_here = waits;
  return guard;
}

void leave_stream(void* entered) noexcept {
  waits_here = true;
  remove_guard(entered);
}

bool calls_wait() noexcept { return waits_here; }

}  // namespace fpt::direct
