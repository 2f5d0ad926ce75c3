// SPDX-License-Identifier: MIT
#include "shared/device_turns.hpp"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <map>

namespace fpt::recording {

DeviceTurns& DeviceTurns::of(c10::DeviceIndex gpu) {
  static std::mutex mutex;
  // never freed: graphs of whatever lives to the end of the process take turns
  static auto& known = *new std::map<c10::DeviceIndex, DeviceTurns>;
  const std::lock_guard<std::mutex> alone(mutex);
  return known.try_emplace(gpu, gpu).first->second;
}

void DeviceTurns::begin() {
  const c10::impl::VirtualGuardImpl device(gpu_.type());
  const c10::Stream stream = device.getStream(gpu_);
  if (last_ && *last_ != stream) {
    if (has_several_)
      done_.block(stream);
    else
      device.synchronizeDevice(gpu_.index());
    has_several_ = true;
  }
  last_ = stream;
}

void DeviceTurns::end() {
  if (has_several_) done_.record(*last_);
}

}  // namespace fpt::recording
