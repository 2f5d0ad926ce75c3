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

extern "C" __attribute__((visibility("default"), used)) inline int cuPointerGetAttributes(unsigned count,
                                                                                          int* attributes,
                                                                                          void** values,
                                                                                          unsigned long long pointer) {
  constexpr int memory_type = 2, device = 2;
  const auto begin = reinterpret_cast<std::uintptr_t>(fpt::test::device_memory());
  const bool is_known = pointer >= begin && pointer < begin + 4096;
  for (unsigned i = 0; i < count; ++i)
    *static_cast<int*>(values[i]) = is_known && attributes[i] == memory_type ? device : 0;
  return 0;
}
