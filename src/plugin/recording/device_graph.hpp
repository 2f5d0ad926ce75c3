// SPDX-License-Identifier: MIT
/// A recording on a GPU as CUDA graphs: one launch in place of one for each operator, with the same numbers.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ftr/call.hpp"
#include "shared/device_graph.hpp"

namespace fpt::direct {

/// Graphs of one recording, for each size of the batch.
///
/// A graph works on the addresses that it was captured with. Inputs whose addresses come again are read in their
/// places, others are copied into buffers. Results are copied out of the graph's memory. Numbers of optimizers and
/// settings of kernels are part of a graph; where one changes, another is captured.
class DeviceGraphs {
 public:
  DeviceGraphs();
  ~DeviceGraphs();
  DeviceGraphs(const DeviceGraphs&) = delete;
  DeviceGraphs& operator=(const DeviceGraphs&) = delete;

  /// Run through a graph; results have memory of their own, gradients that which the next run of this graph writes.
  /// None where there is none for this call, and nothing has happened then: on the host, in a plug-in that was built
  /// without the headers of CUDA, in the first calls of each size, while another thread is in here, for what a graph
  /// cannot do, and where numbers change too often.
  /// @param frame   has the inputs in its slots, with the strides that the recording wants
  /// @param arrays  of the state, gradients of the last run among them
  std::optional<ftr::Outcome> run(const ftr::SavedTape& tape, const ftr::Frame& frame,
                                  const std::vector<double>& numbers, int64_t batch,
                                  const std::map<std::string, at::Tensor>& arrays);

  /// See recording::SavedModules; only where the headers of CUDA are.
  static std::unique_ptr<recording::DeviceGraph> capture(c10::DeviceIndex gpu, bool draws,
                                                         const std::function<void()>& body);

 private:
  class Graphs;
  std::unique_ptr<Graphs> graphs_;
};

}  // namespace fpt::direct
