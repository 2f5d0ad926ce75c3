// SPDX-License-Identifier: MIT
#include "base/thread_stacks.hpp"

#include <link.h>
#include <pthread.h>

#include <cstddef>

namespace fpt {
namespace {

constexpr std::size_t megabyte = std::size_t{1} << 20;

#if defined(__GLIBC__)
/// Of the program and its libraries, with what aligning them may take.
std::size_t thread_local_bytes() noexcept {
  std::size_t sum = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* object, std::size_t, void* total) {
        for (int i = 0; i < object->dlpi_phnum; ++i)
          if (object->dlpi_phdr[i].p_type == PT_TLS)
            *static_cast<std::size_t*>(total) += object->dlpi_phdr[i].p_memsz + object->dlpi_phdr[i].p_align;
        return 0;
      },
      &sum);
  return sum;
}
#endif

}  // namespace

void leave_room_in_stacks() noexcept {
#if defined(__GLIBC__)
  pthread_attr_t attributes;
  if (pthread_getattr_default_np(&attributes) != 0) return;
  std::size_t size = 0;
  const std::size_t data = thread_local_bytes();
  if (pthread_attr_getstacksize(&attributes, &size) == 0 && size < data + 2 * megabyte &&
      pthread_attr_setstacksize(&attributes, data + 8 * megabyte) == 0)
    pthread_setattr_default_np(&attributes);
  pthread_attr_destroy(&attributes);
#endif
}

}  // namespace fpt
