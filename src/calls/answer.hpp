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
#include "calls/tensor.hpp"

namespace fpt {

/// One result: an array with its axes in the order of the script, a number or a string. Memory is the answer's own.
struct Value {
  std::variant<Array, Scalar> content;
  const char* type;  ///< what messages call its type

  const Array* array() const noexcept { return std::get_if<Array>(&content); }
};

/// Its methods may be called from any thread, one at a time; they take what locks they need.
class Answer {
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
  /// Whether copy_from_device() works.
  virtual bool copies_from_device() const noexcept = 0;
  /// Copy an array on a device into host memory of its own type and shape.
  virtual void copy_from_device(int32_t index, const Array& target) = 0;
};

}  // namespace fpt
