// SPDX-License-Identifier: MIT
/// One call of a function of a saved recording with arguments of Fortran: what they are as tensors, and what comes out.
#pragma once

#include <memory>

#include "ftr/call.hpp"
#include "plugin/frame.hpp"
#include "plugin/recording/over_ranks.hpp"

namespace fpt::direct {

/// A function of a file, and what calls of Fortran need beside it.
struct RecordedFunction {
  ftr::Function& of;
  std::shared_ptr<OverRanks> over_ranks;
  FramePool frames;
  RecordedFunction(ftr::Function& function, std::shared_ptr<OverRanks> ranks)
      : of(function), over_ranks(std::move(ranks)) {}
};

/// Find the recording of a call; what ftr::Call refuses.
void choose_recording(ftr::Call& call, const ftr::State& state);

class RecordedCall {
 public:
  /// Arguments as tensors. FPT_ERR_KIND, _STRIDE and others of an input.
  RecordedCall(const Settings& settings, RecordedFunction& function, Inputs inputs, Inputs targets);

  /// Run the recording that takes these arguments, under the settings of its file; gradients become arrays of the
  /// state.
  ///
  /// What ftr::Call refuses, FPT_ERR_INPUT_MODIFIED for an input that it writes and that is not described so,
  /// FPT_ERR_RESULT_TYPE for results in several levels. What an operator throws.
  void run(ftr::State& state, const ftr::CallSettings& settings);

  /// What comes out.
  c10::IValue result() const { return call_.result(); }
  /// What a training step returns: a logical and a number. FPT_ERR_RESULT_TYPE.
  Training trained() const;
  const std::vector<at::Tensor>& tensors() const noexcept { return call_.tensors(); }

  /// After the results were looked at: changed inputs go back.
  void finish(at::ArrayRef<at::Tensor> results);
  /// See DirectAnswer.
  uint64_t changed() const noexcept { return frame_->changed(); }

 private:
  struct Argument {
    const fpt_arg* arg;
    const char* what;
    int32_t index;  // among inputs or targets
  };

  void add(Inputs arguments, const char* what);
  void require_writable() const;

  const Settings& settings_;
  const std::string& label_;
  FramePool::Lease frame_;
  ftr::Call call_;
  c10::SmallVector<Argument, 8> arguments_;
};

}  // namespace fpt::direct
