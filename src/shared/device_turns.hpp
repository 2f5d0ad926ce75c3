// SPDX-License-Identifier: MIT
/// Graphs of a GPU run one after the other, on whatever streams they are launched: those of files, and those of
/// recorded functions. They share torch's random numbers, the workspaces of the stream that they are captured on, and
/// memory.
#pragma once

#include <c10/core/Event.h>
#include <c10/core/Stream.h>

#include <chrono>
#include <mutex>
#include <optional>

namespace fpt::recording {

class DeviceTurns {
 public:
  /// Those of a GPU of this library. A process has one: the plug-in's, or the extension's where there is no plug-in.
  static DeviceTurns& of(c10::DeviceIndex gpu);

  explicit DeviceTurns(c10::DeviceIndex gpu) : gpu_(c10::DeviceType::CUDA, gpu), done_(c10::DeviceType::CUDA) {}

  /// To be held around a capture, and around a launch until what it computes has been copied.
  /// @return false if another thread has it all the time
  bool take(std::chrono::duration<double> wait = {}) { return mutex_.try_lock_for(wait); }
  void give_back() { mutex_.unlock(); }

  /// What the current stream of the GPU is given from now on comes after the last graph.
  void begin();
  /// The graph was launched, and all that reads its memory.
  void end();

 private:
  const c10::Device gpu_;
  std::timed_mutex mutex_;
  std::optional<c10::Stream> last_;
  bool has_several_ = false;  ///< streams; a single one keeps the order by itself
  c10::Event done_;           ///< after the last graph, once there are several
};

}  // namespace fpt::recording
