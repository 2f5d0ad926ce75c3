// SPDX-License-Identifier: MIT
/// Functions of torch by the names that Python has for them: "sum", "Tensor.add_", "nn.functional.gelu", and those of
/// tensors/fortran_axes.py, "fortran.reduce.sum", which count axes as Fortran does.
#pragma once

#include "plugin/eager/schema_call.hpp"
#include "plugin/frame.hpp"

namespace fpt::direct {

/// A call of one.
class FunctionCall : public GivenArguments {
 public:
  explicit FunctionCall(bool same_layout) : same_layout_(same_layout) {}

  std::size_t count() const noexcept { return values.size(); }
  bool has(std::size_t index) const noexcept { return index < values.size(); }
  bool same_layout() const noexcept { return same_layout_; }

  // an argument; NotHere where it is another, or has a name
  at::Tensor& tensor(std::size_t index);
  const std::string& text(std::size_t index) const;
  int64_t integer(std::size_t index) const;
  bool logical(std::size_t index) const;
  at::Scalar number(std::size_t index) const;
  /// Of an integer tensor of rank 1.
  std::vector<int64_t> integers(std::size_t index) const;

  /// Axis of torch for axis `number` of Fortran, from 1. FPT_ERR_ARGUMENT.
  int64_t axis(int64_t number, int64_t rank) const;
  /// Extents of torch for those of Fortran.
  std::vector<int64_t> shape(std::vector<int64_t> extents) const;
  /// A view whose order of elements in torch is that of Fortran.
  at::Tensor in_order_of_fortran(const at::Tensor& tensor) const;

 private:
  const c10::IValue& at(std::size_t index) const;

  const bool same_layout_;
};

/// What this library does itself. @param name  the last part of the name: of "reduce.sum", "sum"
using Own = c10::IValue (*)(FunctionCall& call, const std::string& name);

/// A function that was found, for ever.
struct Function {
  Own own = nullptr;
  std::string name{};
  Operators* operators = nullptr;      ///< where it is none of our own
  std::size_t most_places = SIZE_MAX;  ///< so many arguments may be given by position
  mutable FramePool frames[2]{};       ///< for arrays among the arguments, of each layout

  /// A tuple where there are several results. NotHere for what only Python can call.
  c10::IValue operator()(FunctionCall& call) const;
};

/// NotHere for a name that only Python knows.
const Function& function_named(std::string_view name);

/// Call a function by the name that Python has for it; axes as of same_layout. NotHere where nothing was done.
/// FPT_ERR_PYTHON, _ARGUMENT, _SHAPE, _INPUT_MODIFIED.
/// @param tensors  in place of inputs, which are taken over; undefined for memory, numbers and texts
c10::IValue call_function(std::string_view name, bool same_layout, Args inputs, at::Tensor tensors[]);

}  // namespace fpt::direct
