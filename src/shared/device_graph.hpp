// SPDX-License-Identifier: MIT
/// A CUDA graph. The plug-in captures those of files and those of recorded functions, so that all graphs of a GPU have
/// one stream, one pool of memory and one recovery after a capture that has failed.
#pragma once

#include <torch/version.h>

namespace fpt::recording {

/// Until torch 2.12 its generator takes part in each capture, and fails in other threads that draw meanwhile.
inline constexpr bool others_may_draw = TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= 12;

/// Any thread may let it go.
class DeviceGraph {
 public:
  virtual ~DeviceGraph() = default;
  /// Called by who has the turn (DeviceTurns), with the device as the current one. Throws c10::Error.
  virtual void replay() = 0;
  /// False once a later capture has failed: this graph would draw other random numbers than torch.
  virtual bool can_be_replayed() const = 0;
};

}  // namespace fpt::recording
