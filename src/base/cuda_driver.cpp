// SPDX-License-Identifier: MIT
#include "base/cuda_driver.hpp"

#include <dlfcn.h>
#include <link.h>

#include <cstdint>
#include <cstring>
#include <mutex>
#include <type_traits>

#include "base/error.hpp"
#include "base/paths.hpp"
#include "base/plain.hpp"
#include "base/rank.hpp"

namespace fpt {
namespace {

constexpr const char* library = "libcuda.so.1";

/// Number of objects that have been loaded into the process so far. Looking for the driver takes 30 us, so it is done
/// again only when it can have come.
unsigned long long loaded_objects() noexcept {
  unsigned long long count = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* result) {
        *static_cast<unsigned long long*>(result) = info->dlpi_adds;
        return 1;
      },
      &count);
  return count;
}

const CudaDriver* find_driver() noexcept {
  // dlopen would look for the file of what is not loaded: 45 places, in each rank.
  void* loaded = !loaded_library("libcuda.so").empty() ? dlopen(library, RTLD_NOW | RTLD_NOLOAD) : nullptr;
  const auto symbol = [loaded](const char* name) {
    void* found = dlsym(RTLD_DEFAULT, name);
    return found || !loaded ? found : dlsym(loaded, name);
  };
  static CudaDriver driver;
  const auto find = [&symbol](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(symbol(name));
  };
  find(driver.initialize, "cuInit");
  find(driver.pointer_attributes, "cuPointerGetAttributes");
  if (!driver.pointer_attributes) return nullptr;
  find(driver.get_context, "cuCtxGetCurrent");
  find(driver.set_context, "cuCtxSetCurrent");
  find(driver.device_of_context, "cuCtxGetDevice");
  find(driver.device_count, "cuDeviceGetCount");
  find(driver.retain_primary, "cuDevicePrimaryCtxRetain");
  find(driver.synchronize_stream, "cuStreamSynchronize");
  find(driver.register_memory, "cuMemHostRegister_v2");
  find(driver.unregister_memory, "cuMemHostUnregister");
  return &driver;
}

}  // namespace

std::atomic<const CudaDriver*> cuda_detail::known{nullptr};

const CudaDriver* cuda_driver() noexcept {
  static std::atomic<unsigned long long> looked_at{0};
  if (const CudaDriver* driver = known_cuda_driver()) return driver;
  const unsigned long long now = loaded_objects();
  if (looked_at.load(std::memory_order_relaxed) == now) return nullptr;
  static std::mutex mutex;
  const std::lock_guard<std::mutex> lock(mutex);
  if (!known_cuda_driver()) cuda_detail::known.store(find_driver(), std::memory_order_release);
  looked_at.store(now, std::memory_order_relaxed);
  return known_cuda_driver();
}

CudaContext current_context() noexcept {
  const CudaDriver* driver = known_cuda_driver();
  CudaContext context = nullptr;
  if (!driver || !driver->get_context || !driver->set_context || driver->get_context(&context) != 0) return nullptr;
  return context;
}

std::optional<int> gpu_of_context() noexcept {
  const CudaDriver* driver = known_cuda_driver();
  int gpu = 0;
  if (!current_context() || !driver->device_of_context || driver->device_of_context(&gpu) != 0) return std::nullopt;
  return gpu;
}

CudaPointer cuda_pointer(const CudaDriver* driver, const void* memory) noexcept {
  constexpr unsigned type_device = 2;
  int asked[] = {2, 8, 9};  // CUpointer_attribute: memory type, whether it is managed, number of the GPU
  unsigned type = 0, managed = 0;
  CudaPointer found;
  void* values[] = {&type, &managed, &found.gpu};
  // of an address that it does not know, the driver says so by zeros, after 0.06 us; asked for one attribute, by an
  // error, after 0.9 us
  if (!driver || driver->pointer_attributes(3, asked, values, reinterpret_cast<std::uintptr_t>(memory)) != 0) return {};
  found.is_managed = managed != 0;
  found.is_of_device = type == type_device && !found.is_managed;
  return found;
}

const CudaDriver& open_cuda_driver() {
  void* loaded = cuda_driver() ? nullptr : dlopen(library, RTLD_NOW | RTLD_GLOBAL);
  const CudaDriver* driver = cuda_driver();
  if (!driver) {
    const char* reason = loaded ? "it lacks functions" : dlerror();
    fail(FPT_ERR_DEVICE, "the driver of CUDA cannot be used: ", reason ? reason : "unknown reason");
  }
  if (const int error = driver->initialize ? driver->initialize(0) : 0)
    fail(FPT_ERR_DEVICE, "the driver of CUDA finds no GPU that can be used (error ", error, ")");
  return *driver;
}

int gpu_of_name(const char* name) {
  const bool is_free = std::strcmp(name, "cuda") == 0;
  if (is_free) {
    cuda_driver();
    if (const std::optional<int> gpu = gpu_of_context()) return *gpu;
    if (local_rank() == 0) return 0;
  }
  const auto refuse = [name] {
    fail(FPT_ERR_DEVICE, "device is '", name, R"('; use "cuda", "cuda:1" or "cuda:local")");
  };
  if (!is_free && std::strncmp(name, "cuda:", 5) != 0) refuse();
  const CudaDriver& driver = open_cuda_driver();
  int count = 0;
  if (!driver.device_count || driver.device_count(&count) != 0 || count < 1)
    fail(FPT_ERR_DEVICE, "the driver of CUDA finds no GPU that can be used");
  const char* number = name + 5;
  if (is_free || std::strcmp(number, "local") == 0) return local_rank() % count;
  const int64_t index = whole_number(number).value_or(-1);
  if (index < 0) refuse();
  if (index >= count)
    fail(FPT_ERR_DEVICE, "device is '", name, "', but the driver of CUDA finds ", count, count == 1 ? " GPU" : " GPUs");
  return static_cast<int>(index);
}

}  // namespace fpt
