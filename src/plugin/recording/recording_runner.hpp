// SPDX-License-Identifier: MIT
/// What runs a recording of a file faster than its operators do: graphs of a GPU, and code of torch's compiler.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ftr/call.hpp"
#include "plugin/package/package_origin.hpp"
#include "plugin/recording/device_graph.hpp"

namespace fpt::direct {

class RecordingRunner : public ftr::Runner {
 public:
  /// @param loader  of the code; null for none  @param label  of the function, for texts
  RecordingRunner(bool has_graphs, std::unique_ptr<PackageLoader> loader, std::string label)
      : has_graphs_(has_graphs), loader_(std::move(loader)), label_(std::move(label)) {}

  std::optional<ftr::Outcome> run(const ftr::SavedTape& tape, ftr::Frame& frame, std::vector<double>& numbers,
                                  int64_t batch, const std::map<std::string, at::Tensor>& arrays) override;

 private:
  bool run_code(const ftr::SavedTape& tape, ftr::Frame& frame, std::vector<double>& numbers);

  const bool has_graphs_;
  DeviceGraphs graphs_;
  std::unique_ptr<PackageLoader> loader_;
  const std::string label_;
};

}  // namespace fpt::direct
