// SPDX-License-Identifier: MIT
#include "arrays/device.hpp"

#include <dlfcn.h>
#include <link.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

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
  const PointerGetAttribute get_attribute = driver();
  if (!get_attribute) return false;
  unsigned type = 0, managed = 0;
  const auto address = static_cast<unsigned long long>(reinterpret_cast<std::uintptr_t>(memory));
  if (get_attribute(&type, attribute_memory_type, address) != 0)
    return false;  // not an address CUDA knows: plain host memory
  get_attribute(&managed, attribute_is_managed, address);
  return type == memory_type_device && managed == 0;
}

bool is_device_memory_again(const void* memory) noexcept {
  // The driver takes up to a microsecond to say that it does not know an address.
  static thread_local std::array<const void*, 64> on_host{};
  const void*& place = on_host[reinterpret_cast<std::uintptr_t>(memory) / 64 % on_host.size()];
  if (place == memory) return false;
  if (is_device_memory(memory)) return true;
  place = memory;
  return false;
}

}  // namespace fpt
