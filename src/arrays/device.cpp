// SPDX-License-Identifier: MIT
#include "arrays/device.hpp"

#include <atomic>
#include <cstdint>

#include "base/cuda_context.hpp"
#include "base/error.hpp"

namespace fpt {
namespace {

Device asked_of_driver(const void* memory) noexcept {
  const CudaPointer known = cuda_pointer(cuda_driver_in_call(), memory);
  return known.is_of_device ? Device{Device::cuda_type, known.gpu} : Device{};
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

Device device_of(const void* memory) noexcept {
  static std::atomic<const void*> of_host[64] = {};
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  std::atomic<const void*>& known = of_host[(address >> 4 ^ address >> 12) % 64];
  if (known.load(std::memory_order_relaxed) == memory) return {};
  const Device device = asked_of_driver(memory);
  if (device.is_host()) known.store(memory, std::memory_order_relaxed);
  return device;
}

void require_host_memory(const void* memory) {
  if (const Device device = device_of(memory); !device.is_host())
    fail(FPT_ERR_DEVICE, "the array is in memory of ", device_name(device),
         ", which the host cannot read or write: ", "pass a host array, without use_device");
}

}  // namespace fpt
