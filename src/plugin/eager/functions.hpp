// SPDX-License-Identifier: MIT
/// Functions of torch by the names that Python has for them: "sum", "Tensor.add_", "nn.functional.gelu".
#pragma once

#include "plugin/eager/schema_call.hpp"
#include "plugin/frame.hpp"

namespace fpt::direct {

/// A call of one.
class FunctionCall : public GivenArguments {
 public:
  std::size_t count() const noexcept { return values.size(); }

  // an argument; NotHere where it is another, or has a name
  at::Tensor& tensor(std::size_t index);
  at::Tensor& only_tensor();
  int64_t integer(std::size_t index) const;

 private:
  const c10::IValue& at(std::size_t index) const;
};

/// What this library does itself. @param name  the last part of the name
using Own = c10::IValue (*)(FunctionCall& call, const std::string& name);

/// A function that was found, for ever.
struct Function {
  Own own = nullptr;
  std::string name{};
  Operators* operators = nullptr;              ///< where it is none of our own
  const std::string_view* settings = nullptr;  ///< ",alpha,": what may be given beside one tensor, by name; else all
  mutable FramePool frames[2]{};               ///< for arrays among the arguments, of each layout

  /// A tuple where there are several results. NotHere for what only Python can call.
  c10::IValue operator()(FunctionCall& call) const;
};

/// NotHere for a name that only Python knows.
const Function& function_named(std::string_view name);

/// Call a function by the name that Python has for it. NotHere where nothing was done. What it throws is that of torch.
c10::IValue call_function(std::string_view name, FunctionCall& call);

/// The same of arguments that may be memory; axes as of same_layout. NotHere where nothing was done.
/// FPT_ERR_PYTHON, _ARGUMENT, _SHAPE, _INPUT_MODIFIED.
/// @param tensors  in place of inputs, which are taken over; undefined for memory, numbers and texts
c10::IValue call_function(std::string_view name, bool same_layout, Args inputs, at::Tensor tensors[]);

}  // namespace fpt::direct
