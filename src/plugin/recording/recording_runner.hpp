// SPDX-License-Identifier: MIT
/// What runs a recording of a file faster than its operators do: graphs of a GPU, and code of torch's compiler.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ftr/call.hpp"
#include "plugin/recording/device_graph.hpp"
#include "shared/code.hpp"

namespace fpt::direct {

class RecordingRunner : public ftr::Runner {
 public:
  /// @param code  null for none
  RecordingRunner(bool has_graphs, std::unique_ptr<recording::Code> code)
      : has_graphs_(has_graphs), code_(std::move(code)) {}

  std::optional<ftr::Outcome> run(const ftr::SavedTape& tape, ftr::Frame& frame, std::vector<double>& numbers,
                                  int64_t batch, const std::map<std::string, at::Tensor>& arrays) override;

 private:
  const bool has_graphs_;
  DeviceGraphs graphs_;
  std::unique_ptr<recording::Code> code_;
};

}  // namespace fpt::direct
