// SPDX-License-Identifier: MIT
/// Where memory is, and whose memory a pointer names. CUDA is asked only where a program has brought it along.
#pragma once

#include <cstdint>
#include <string>

namespace fpt {

/// A place of memory, in the numbers of DLPack (DLDeviceType and device_id). Arrays of the host alone are passed so
/// far.
struct Device {
  static constexpr int32_t host_type = 1;

  int32_t type = host_type;
  int32_t index = 0;

  bool is_host() const noexcept { return type == host_type; }
  friend bool operator==(Device a, Device b) noexcept { return a.type == b.type && a.index == b.index; }
};

/// What torch calls a place: "cpu", "cuda:0".
std::string device_name(Device device);

/// True if `memory` is an address of device memory, which the host cannot read. A process without the CUDA driver has
/// no such addresses.
bool is_device_memory(const void* memory) noexcept;

/// The same for memory that every call asks for: an address that this thread has found on the host before is taken to
/// be there still.
bool is_device_memory_again(const void* memory) noexcept;

}  // namespace fpt
