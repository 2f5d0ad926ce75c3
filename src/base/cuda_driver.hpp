// SPDX-License-Identifier: MIT
/// Functions of the CUDA driver (CUDA Driver API, https://docs.nvidia.com/cuda/cuda-driver-api/), found by name:
/// nothing is linked with it, and a process without GPUs never loads it.
#pragma once

#include <atomic>
#include <cstddef>
#include <optional>

#include "ftn_pytorch.h"

namespace fpt {

using CudaContext = void*;  // CUcontext

/// Every function returns 0 or an error. Null where the driver lacks it.
struct CudaDriver {
  int (*initialize)(unsigned flags);
  int (*pointer_attributes)(unsigned count, int* attributes, void** values, unsigned long long pointer);
  int (*get_context)(CudaContext* context);
  int (*set_context)(CudaContext context);
  int (*device_of_context)(int* device);  // of the current one
  int (*device_count)(int* count);
  int (*retain_primary)(CudaContext* context, int device);
  int (*synchronize_stream)(void* stream);
  int (*register_memory)(void* memory, std::size_t bytes, unsigned flags);
  int (*unregister_memory)(void* memory);
};

namespace cuda_detail {
extern FPT_API std::atomic<const CudaDriver*> known;
}

/// The driver if it has been found before; else null.
inline const CudaDriver* known_cuda_driver() noexcept { return cuda_detail::known.load(std::memory_order_acquire); }

/// The driver if the process has loaded it; else null. Looking takes 20 ns where there is none.
const CudaDriver* cuda_driver() noexcept;

/// The context that is current on this thread and can be made so again; null without one, and before cuda_driver().
CudaContext current_context() noexcept;
/// Its GPU.
std::optional<int> gpu_of_context() noexcept;

/// What the driver knows of an address; nothing of memory that CUDA has never seen, nor without a driver.
struct CudaPointer {
  bool is_of_device = false;  ///< the host cannot use it: no managed and no pinned memory
  bool is_managed = false;
  int gpu = 0;
};
CudaPointer cuda_pointer(const CudaDriver* driver, const void* memory) noexcept;

/// The driver, loaded and initialized. FPT_ERR_DEVICE.
const CudaDriver& open_cuda_driver();

/// GPU of a name: 1 for "cuda:1", for "cuda:local" the rank of this process on its node modulo the number of GPUs.
/// "cuda" is the GPU of the context that is current on this thread, and "cuda:local" without one. FPT_ERR_DEVICE.
int gpu_of_name(const char* name);

}  // namespace fpt
