// SPDX-License-Identifier: MIT
/// What a GPU has once, for all graphs of files and of recorded functions: the stream on which they are captured, with
/// the workspaces that libraries keep for it, and the pool of their memory. Graphs that share these take turns.
#pragma once

#include <ATen/cuda/CUDAGraph.h>
#include <c10/core/Device.h>
#include <c10/util/FunctionRef.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>

#include "shared/device_graph.hpp"
#include "shared/device_turns.hpp"

namespace fpt::direct {

class DeviceOwner;

/// A graph that has memory in the common pool.
class OwnedGraph : public recording::DeviceGraph {
 public:
  OwnedGraph(DeviceOwner& owner, int failures) : owner_(owner), failures_(failures) {}
  ~OwnedGraph() override;
  OwnedGraph(const OwnedGraph&) = delete;
  OwnedGraph& operator=(const OwnedGraph&) = delete;

  void replay() override { graph_.replay(); }
  bool can_be_replayed() const override;

 private:
  friend class DeviceOwner;
  DeviceOwner& owner_;
  at::cuda::CUDAGraph graph_;
  std::optional<at::MempoolId_t> pool_;  ///< in which it has memory
  int failures_;
};

/// All but `of` is called by who has the turn, with the device as the current one.
class DeviceOwner {
 public:
  /// Whether this torch has what graphs need: its functions for CUDA are missing in one that is built without.
  static bool is_possible() noexcept;
  /// That of a GPU of this process.
  static DeviceOwner& of(c10::Device gpu);

  explicit DeviceOwner(c10::Device gpu) : gpu_(gpu), turns_(recording::DeviceTurns::of(gpu.index())) {}

  recording::DeviceTurns& turns() noexcept { return turns_; }

  /// A graph of what `body` launches, of which nothing is computed. What cannot be captured throws; memory and random
  /// numbers are as before then.
  /// @param draws  random numbers of torch's generator. Until torch 2.12 other threads cannot draw meanwhile, and this
  /// is
  ///               refused where there are any
  std::unique_ptr<OwnedGraph> capture(bool draws, c10::function_ref<void()> body);

 private:
  friend class OwnedGraph;
  void begin(at::cuda::CUDAGraph& graph, bool draws);
  void recover(bool has_begun) noexcept;

  const c10::Device gpu_;
  recording::DeviceTurns& turns_;
  /// Captures that have failed: torch's generator has a new state for each, and graphs of before draw from the old one.
  std::atomic<int> failures_ = 0;
  /// Of what is below; held around captures, in which this thread may let graphs go (Python collects garbage).
  std::recursive_mutex mutex_;
  std::optional<at::MempoolId_t> pool_;
  int graphs_ = 0;                     ///< that have memory in this pool; one without any cannot be used again
  std::optional<c10::Stream> stream_;  ///< torch's pool gives the same one again after 32
};

}  // namespace fpt::direct
