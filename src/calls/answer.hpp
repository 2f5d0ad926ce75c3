// SPDX-License-Identifier: MIT
/// The results of one call as both paths hand them over: a script's as Python objects, a saved model's as tensors of
/// libtorch. Knows nothing of Python.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>

#include "arrays/array.hpp"
#include "arrays/result_names.hpp"
#include "arrays/scalar.hpp"
#include "values/tensor.hpp"

namespace fpt {

/// One result: an array with its axes in the order of the script, a number or a string. Memory is the answer's own.
struct Value {
  std::variant<Array, Scalar> content;
  const char* type;  ///< what messages call its type

  const Array* array() const noexcept { return std::get_if<Array>(&content); }
};

/// Its methods may be called from any thread, one at a time; they take what locks they need.
class FPT_API Answer {
 public:
  virtual ~Answer() = default;

  /// Number and names of the results.
  virtual ResultList list() const = 0;
  /// A result, counted from 0. FPT_ERR_RESULT_TYPE for what Fortran cannot look into. Arrays may lie on a device.
  virtual Value value(int32_t index) = 0;
  /// A copy of an array in host memory, kept by the answer; the array itself where it is there.
  virtual Array on_host(int32_t index) = 0;
  /// The same of a type that is converted here: float32 for half precision.
  virtual Array convertible(int32_t index) = 0;
  /// An array as a tensor that keeps it alive, with the graph behind it; `on_host`: the array of that function.
  virtual TensorPtr tensor(int32_t index, bool same_layout, bool on_host) = 0;
  /// Copy between memory of which one at least is on a device, by torch, which converts. Shapes agree. What goes to a
  /// device may still be under way on torch's stream afterwards.
  virtual void copy(const Array& source, const Array& target) = 0;
  /// The most frequent result: one tensor of the very type and shape of its output. False, and nothing is done, if it
  /// is another case.
  virtual bool copy_at_once(const fpt_arg& /*output*/, bool /*same_layout*/) const { return false; }
  /// Until torch has done what it was asked to do on a device.
  virtual void wait(Device device) = 0;
};

}  // namespace fpt
