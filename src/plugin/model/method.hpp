// SPDX-License-Identifier: MIT
/// A method of a TorchScript model: its forms, and its arguments.
#pragma once

#include "plugin/frame.hpp"
#include "plugin/model/effects.hpp"

namespace fpt::direct {

/// Inputs as the model gets them, for texts: "(float32 array of shape (32, 16), scale=float)".
std::string described(Inputs inputs, const Settings& settings);

/// One method, and what is kept between its calls.
class Method {
 public:
  Method(const torch::jit::Module& module, const std::string& name, const Settings& settings);

  /// What texts call it: "ftn_pytorch_forward of net".
  const std::string& label() const noexcept { return label_; }

  const Effects& effects() const noexcept { return effects_; }
  FramePool& frames() noexcept { return frames_; }
  /// Have torch run the model's own form as it is written. Otherwise torch rewrites it after a first call, for its
  /// gradients too, and training that is resumed would differ in the last bits from training that went on.
  void run_as_written();
  /// Run another form of the same method from now on.
  void use(const torch::jit::Module& module);

  /// Put the model and the arguments of a call on the stack of the frame. Where forward takes one dictionary, named
  /// inputs are its entries. FPT_ERR_SIGNATURE.
  void push(const Settings& settings, Frame& frame, Inputs inputs) const;
  /// Run it; the result.
  c10::IValue run(Frame& frame) const;
  /// Run it in the form that a model has it in.
  c10::IValue run(Frame& frame, const torch::jit::Module& module) const;

 private:
  static c10::IValue run(Frame& frame, torch::jit::Function& function);
  c10::IValue argument(const Settings& settings, Frame& frame, Inputs inputs, int32_t index,
                       const c10::Argument& wanted) const;
  void push_dictionary(const Settings& settings, Frame& frame, Inputs inputs, const c10::Argument& wanted) const;
  std::size_t position_of(const fpt_arg& arg, int32_t index, const Settings& settings, Inputs inputs) const;
  [[noreturn]] void refuse(const Settings& settings, Inputs inputs, const std::string& reason) const;

  std::string label_, name_;
  c10::IValue self_;
  torch::jit::Function* function_;
  const c10::FunctionSchema* schema_;  // of the model as it was written
  Effects effects_;
  FramePool frames_;
};

}  // namespace fpt::direct
