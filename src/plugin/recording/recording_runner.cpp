// SPDX-License-Identifier: MIT
#include "plugin/recording/recording_runner.hpp"

#include <ATen/ops/from_blob.h>

#include "plugin/tensors.hpp"

namespace fpt::direct {
namespace {

/// What code is given; empty where a call would write memory that it reads through another tensor, as code does that at
/// another time.
std::vector<at::Tensor> given_to_code(const ftr::SavedTape& tape, const ftr::Frame& frame) {
  std::vector<at::Tensor> all;
  for (const int32_t slot : tape.code->inputs) all.push_back(frame.slots[static_cast<std::size_t>(slot)].toTensor());
  const std::size_t inputs = all.size();
  all.insert(all.end(), tape.code->memory.begin(), tape.code->memory.end());
  if (!tape.writes && tape.written_inputs.empty()) return all;
  std::vector<Array> places;
  for (const at::Tensor& each : all) places.push_back(array_of_tensor(each, true));
  for (std::size_t i = 0; i < inputs; ++i)
    for (std::size_t j = tape.written_inputs.empty() ? inputs : i + 1; j < all.size(); ++j)
      if (overlap(places[i], places[j])) return {};
  return all;
}

}  // namespace

std::optional<ftr::Outcome> RecordingRunner::run(const ftr::SavedTape& tape, ftr::Frame& frame,
                                                 std::vector<double>& numbers, int64_t batch,
                                                 const std::map<std::string, at::Tensor>& arrays) {
  if (has_graphs_)
    if (auto launched = graphs_.run(tape, frame, numbers, batch, arrays)) return launched;
  if (loader_ && run_code(tape, frame, numbers)) return ftr::outcome_in(frame, tape);
  return std::nullopt;
}

/// Whether there is code for these arguments, which has filled the slots of what is computed then.
bool RecordingRunner::run_code(const ftr::SavedTape& tape, ftr::Frame& frame, std::vector<double>& numbers) {
  std::vector<at::Tensor> given = given_to_code(tape, frame);
  if (given.empty()) return false;
  if (!numbers.empty())
    given.push_back(at::from_blob(numbers.data(), {static_cast<int64_t>(numbers.size())}, at::kDouble));
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  const std::vector<at::Tensor> made = loader_->run(given);
  const std::vector<int32_t>& results = tape.code->results;
  if (made.size() != results.size())
    fail(FPT_ERR_FORMAT, label_, " has code with ", made.size(), " results, and not ", results.size());
  for (std::size_t i = 0; i < results.size(); ++i) frame.slots[static_cast<std::size_t>(results[i])] = made[i];
  return true;
}

}  // namespace fpt::direct
