// SPDX-License-Identifier: MIT
#include "plugin/recording/recording_runner.hpp"

namespace fpt::direct {

std::optional<ftr::Outcome> RecordingRunner::run(const ftr::SavedTape& tape, ftr::Frame& frame,
                                                 std::vector<double>& numbers, int64_t batch,
                                                 const std::map<std::string, at::Tensor>& arrays) {
  if (has_graphs_)
    if (auto launched = graphs_.run(tape, frame, numbers, batch, arrays)) return launched;
  if (code_ && code_->run(frame, numbers)) return ftr::outcome_in(frame, tape);
  return std::nullopt;
}

}  // namespace fpt::direct
