// SPDX-License-Identifier: MIT
/// Results of a script on their way to Fortran: into outputs, into a results object, into is_completed and loss.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "script/module.hpp"
#include "arrays/result_names.hpp"
#include "calls/tensor.hpp"

namespace fpt {

/// Copy the results into the outputs, the i-th into the i-th, or by name. Everything is checked before the first copy;
/// memory that is already where it should be is left alone. FPT_ERR_RESULT_COUNT, _NAME, _TYPE, _SHAPE, _DTYPE.
/// @param in_place  the function had the outputs as parameter `out`, so None is a complete answer
void deliver(const Module& module, const Function& function, PyObject* result, fpt_arg* outputs, int32_t count,
             bool in_place);

/// For a call that wants no results: a coroutine or a generator means that the function has done nothing yet.
/// FPT_ERR_RESULT_TYPE.
void require_done(const Module& module, const Function& function, PyObject* result);

/// First and second result of train. FPT_ERR_TRAIN_RESULT.
void deliver_training(const Module& module, const Function& function, PyObject* result, int32_t& completed,
                      double& loss);

/// The single array (or number, as an array without axes) that a function returned.
Tensor single_tensor(const Module& module, const Function& function, PyObject* result);

/// What torch_results holds.
class Results {
 public:
  static Results of(const Module& module, const Function& function, PyObject* result);

  const ResultNames& names() const noexcept { return names_; }

  Tensor tensor(int32_t index);
  void memory(int32_t index, int32_t dtype, int32_t rank, void** data, int64_t* extents, int64_t* strides);
  void copy_into(int32_t index, const fpt_arg& output, bool cast);
  const std::string& text(int32_t index);

 private:
  struct Value {
    Ref object;
    std::string text;
    bool viewed = false;
    Tensor tensor;
  };

  Value& value(int32_t index);
  const Tensor& viewed(int32_t index);

  ResultNames names_;
  bool same_layout_ = false;
  std::vector<Value> values_;
};

Results& results_at(int64_t handle);
/// New contents for a handle, which becomes a new one if it was 0 or stale. With the interpreter lock held.
void store_results(int64_t* handle, Results results);
void free_results(int64_t handle) noexcept;

}  // namespace fpt
