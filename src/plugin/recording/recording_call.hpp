// SPDX-License-Identifier: MIT
/// A function of a saved recording, and one call of it: arguments, the recording that takes them, and what comes out.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "plugin/frame.hpp"
#include "plugin/package/package_origin.hpp"
#include "plugin/recording/call_settings.hpp"
#include "plugin/recording/device_graph.hpp"
#include "plugin/recording/over_ranks.hpp"
#include "plugin/recording/recording_state.hpp"
#include "plugin/recording/saved_tape.hpp"
#include "tape/saved_module.hpp"

namespace fpt::direct {

/// A recording, its code, its graphs on a GPU, and frames that are not in use.
struct Recorded {
  SavedTape tape;
  std::unique_ptr<PackageLoader> loader;  ///< of the code; null where operators are called
  DeviceGraphs graphs;
  std::mutex mutex;
  std::vector<recording::Frame> idle;
  explicit Recorded(SavedTape of) : tape(std::move(of)) {}
};

struct RecordedFunction {
  std::string label;  ///< "ftn_pytorch_train of closure"
  std::vector<std::unique_ptr<Recorded>> recorded;
  FramePool frames;
  bool writes = false;  ///< a call needs the model alone
  std::shared_ptr<OverRanks> over_ranks;
};

class RecordedCall {
 public:
  /// Arguments as tensors. FPT_ERR_KIND, _STRIDE and others of an input.
  RecordedCall(const Settings& settings, RecordedFunction& function, Inputs inputs, Inputs targets);
  /// Those of Python, which may have any type, be written, and get results in several levels.
  RecordedCall(const Settings& settings, RecordedFunction& function, const recording::SavedArguments& given);

  /// Places of the arguments that the recording for them would change. Fails as run().
  std::vector<std::size_t> written(const RecordingState& state);

  /// Run the recording that takes these arguments, under the settings of its file; gradients become arrays of the
  /// state.
  ///
  /// FPT_ERR_SIGNATURE, _DTYPE, _SHAPE, _ARGUMENT where none does, FPT_ERR_HOOK where a step of an optimizer would go
  /// another way or gradients are not there as they were, FPT_ERR_INPUT_MODIFIED for an input that it writes and that
  /// is not described so, FPT_ERR_RESULT_TYPE for results in several levels. What an operator throws.
  void run(RecordingState& state, const CallSettings& settings);

  /// What comes out.
  c10::IValue result() const;
  /// What a training step returns: a logical and a number. FPT_ERR_RESULT_TYPE.
  Training trained() const;
  const std::vector<at::Tensor>& tensors() const noexcept { return tensors_; }

  /// After the results were looked at: changed inputs go back.
  void finish(at::ArrayRef<at::Tensor> results);
  /// See DirectAnswer.
  uint64_t changed() const noexcept { return frame_->changed(); }

 private:
  struct Given {
    c10::IValue value;
    std::string_view name;
    const fpt_arg* arg = nullptr;  // of Fortran
    const char* what = nullptr;
    int32_t index = 0;  // among inputs or targets
    bool is_own_copy = false;
  };

  void add(Inputs arguments, const char* what);
  bool set_order(const SavedTape& tape);
  void choose(const RecordingState& state);
  fpt_status fits(const SavedTape& tape, std::size_t place);
  bool is_made_for(const SavedTape& tape, bool of_all_axes) const;
  const at::Tensor& tensor(std::size_t place) const { return given_[order_[place]].value.toTensor(); }
  [[noreturn]] void refuse(fpt_status status) const;
  void require_writable() const;
  void set_input(recording::Frame& frame, const SavedInput& input, std::size_t place);
  bool run_code(recording::Frame& frame);
  void give_back(std::size_t place);

  const Settings& settings_;
  RecordedFunction& function_;
  FramePool::Lease frame_;
  c10::SmallVector<Given, 8> given_;
  c10::SmallVector<std::size_t, 8> order_;
  std::vector<std::pair<std::size_t, at::Tensor>> copies_;
  std::vector<double> numbers_;
  std::vector<at::Tensor> tensors_;
  Recorded* recorded_ = nullptr;
  int64_t batch_ = 0;
  bool is_of_fortran_ = true;
};

}  // namespace fpt::direct
