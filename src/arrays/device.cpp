// SPDX-License-Identifier: MIT
#include "arrays/device.hpp"

#include <dlfcn.h>
#include <link.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/error.hpp"

namespace fpt {
namespace {

// CUDA driver API: cuPointerGetAttribute(void*, CUpointer_attribute, CUdeviceptr)
using PointerGetAttribute = int (*)(void* data, int attribute, unsigned long long pointer);
constexpr int attribute_memory_type = 2;
constexpr int attribute_is_managed = 8;
constexpr unsigned memory_type_device = 2;

PointerGetAttribute find_driver() noexcept {
  if (void* symbol = dlsym(RTLD_DEFAULT, "cuPointerGetAttribute")) return reinterpret_cast<PointerGetAttribute>(symbol);
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  return driver ? reinterpret_cast<PointerGetAttribute>(dlsym(driver, "cuPointerGetAttribute")) : nullptr;
}

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

PointerGetAttribute driver() noexcept {
  static std::atomic<PointerGetAttribute> found{nullptr};
  static std::atomic<unsigned long long> looked_at{0};
  if (PointerGetAttribute known = found.load(std::memory_order_relaxed)) return known;
  const unsigned long long now = loaded_objects();
  if (looked_at.load(std::memory_order_relaxed) == now) return nullptr;
  found.store(find_driver(), std::memory_order_relaxed);
  looked_at.store(now, std::memory_order_relaxed);
  return found.load(std::memory_order_relaxed);
}

bool asked_of_driver(std::uintptr_t address) noexcept {
  const PointerGetAttribute get_attribute = driver();
  if (!get_attribute) return false;
  unsigned type = 0, managed = 0;
  if (get_attribute(&type, attribute_memory_type, address) != 0)
    return false;  // not an address CUDA knows: plain host memory
  get_attribute(&managed, attribute_is_managed, address);
  return type == memory_type_device && managed == 0;
}

}  // namespace

std::string device_name(Device device) {
  if (device.is_host()) return "cpu";
  // kDLCUDA and kDLROCM, which torch calls alike, kDLMetal, kDLOneAPI
  const char* type = device.type == 2 || device.type == 10 ? "cuda"
                     : device.type == 8                    ? "mps"
                     : device.type == 14                   ? "xpu"
                                                           : "device";
  return std::string(type) + ":" + std::to_string(device.index);
}

bool is_device_memory(const void* memory) noexcept {
  static std::atomic<const void*> of_host[64] = {};
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  std::atomic<const void*>& known = of_host[(address >> 4 ^ address >> 12) % 64];
  if (known.load(std::memory_order_relaxed) == memory) return false;
  if (asked_of_driver(address)) return true;
  known.store(memory, std::memory_order_relaxed);
  return false;
}

void require_host_memory(const void* memory) {
  if (is_device_memory(memory))
    fail(FPT_ERR_DEVICE, "the array is in device memory, which this version cannot use: ",
         "update the host copy and pass that, without use_device");
}

}  // namespace fpt
