// SPDX-License-Identifier: MIT
/// Plays the driver of CUDA, as far as the library asks it: for one source file of a program that exports its symbols.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>

namespace fpt::test {

/// Memory that the driver takes for memory of a device; whoever touches it on the host crashes.
inline void* device_memory() {
  static void* const memory = mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory;
}

}  // namespace fpt::test

extern "C" __attribute__((visibility("default"), used)) inline int cuPointerGetAttribute(void* data, int attribute,
                                                                                         unsigned long long pointer) {
  constexpr int memory_type = 2, managed = 8;
  constexpr unsigned device = 2;
  const auto begin = reinterpret_cast<std::uintptr_t>(fpt::test::device_memory());
  if (pointer < begin || pointer >= begin + 4096) return 1;  // CUDA_ERROR_INVALID_VALUE: never seen
  if (attribute == memory_type) *static_cast<unsigned*>(data) = device;
  if (attribute == managed) *static_cast<unsigned*>(data) = 0;
  return 0;
}
