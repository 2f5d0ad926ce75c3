// SPDX-License-Identifier: MIT
#include "device.hpp"

#include <dlfcn.h>

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

}  // namespace

bool is_device_memory(const void* memory) noexcept {
  // looked for until found: the driver may be loaded later, by the program or by torch
  static PointerGetAttribute driver = nullptr;
  if (!driver) driver = find_driver();
  if (!driver) return false;
  unsigned type = 0, managed = 0;
  const auto address = static_cast<unsigned long long>(reinterpret_cast<std::uintptr_t>(memory));
  if (driver(&type, attribute_memory_type, address) != 0) return false;  // not an address CUDA knows: plain host memory
  driver(&managed, attribute_is_managed, address);
  return type == memory_type_device && managed == 0;
}

}  // namespace fpt
