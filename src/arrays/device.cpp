// SPDX-License-Identifier: MIT
#include "arrays/device.hpp"

#include "arrays/policy.hpp"
#include "base/cuda_context.hpp"
#include "base/error.hpp"

namespace fpt {
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
  const CudaPointer known = cuda_pointer(cuda_driver_in_call(), memory);
  return known.is_of_device ? Device{Device::cuda_type, known.gpu} : Device{};
}

void require_host_memory(const void* memory) {
  if (const Device device = device_of(memory); !device.is_host())
    refuse_memory(device, "which the host cannot read or write: pass a host array, without use_device");
}

}  // namespace fpt
