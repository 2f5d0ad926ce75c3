// SPDX-License-Identifier: MIT
/// Where memory is, and whose memory a pointer names. CUDA is asked only where a program has brought it along.
#pragma once

#include <cstdint>
#include <string>

#include "ftn_pytorch.h"

namespace fpt {

/// A place of memory, in the numbers of DLPack (DLDeviceType and device_id).
struct Device {
  static constexpr int32_t host_type = 1, cuda_type = 2;

  int32_t type = host_type;
  int32_t index = 0;

  bool is_host() const noexcept { return type == host_type; }
  bool is_cuda() const noexcept { return type == cuda_type; }
  friend bool operator!=(Device a, Device b) noexcept { return !(a == b); }
  friend bool operator==(Device a, Device b) noexcept { return a.type == b.type && a.index == b.index; }
};

/// What torch calls a place: "cpu", "cuda:0".
FPT_API std::string device_name(Device device);

/// Where an address is. Managed and pinned memory is that of the host, and so is all memory of a process without the
/// CUDA driver. The driver is asked each time, 0.06 us: what is freed on the host may come back as memory of a device.
FPT_API Device device_of(const void* memory) noexcept;
inline bool is_device_memory(const void* memory) noexcept { return !device_of(memory).is_host(); }

/// FPT_ERR_DEVICE for memory that the host cannot read or write.
FPT_API void require_host_memory(const void* memory);

}  // namespace fpt
