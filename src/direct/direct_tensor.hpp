// SPDX-License-Identifier: MIT
/// Tensors of libtorch behind torch_tensor, as the plug-in holds them. Knows nothing of Python.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "direct/fpt_direct.h"
#include "values/tensor.hpp"

namespace fpt {

/// A tensor of the plug-in in use: as long as the tensor that it is of, and this, live.
struct RawTensor {
  fpt_direct_tensor* tensor = nullptr;
  std::shared_ptr<fpt_direct_tensor> owner;  ///< of a gradient, which is another one each time

  fpt_direct_tensor* get() const noexcept { return tensor; }
  explicit operator bool() const noexcept { return tensor != nullptr; }
};

/// Takes a tensor of the plug-in over.
[[nodiscard]] TensorPtr tensor_of_raw(fpt_direct_tensor* raw, bool same_layout);

/// Whatever gradient a tensor of libtorch has when this is used.
[[nodiscard]] TensorPtr gradient_of_raw(TensorPtr source);

/// The tensor of libtorch that a tensor is now, or that is made of its memory; null for an object of Python that is of
/// a class of its own, or no tensor. FPT_ERR_ARGUMENT for a gradient that is not there.
[[nodiscard]] RawTensor raw_of(Tensor& tensor);

/// The same where Python is the engine of this process: the tensor of libtorch behind an object.
[[nodiscard]] RawTensor shared_raw_of(Tensor& tensor);

/// Takes a tensor of the plug-in over, for the engine of this process.
[[nodiscard]] TensorPtr shared_tensor_of_raw(fpt_direct_tensor* raw, bool same_layout);

/// Tensors as arguments of a call, with handles that end with this.
class TensorArguments {
 public:
  TensorArguments() = default;
  ~TensorArguments() {
    for (const int64_t handle : handles_) free_tensor(handle);
  }
  TensorArguments(const TensorArguments&) = delete;
  TensorArguments& operator=(const TensorArguments&) = delete;
  fpt_arg add(TensorPtr tensor) {
    handles_.push_back(insert_unscoped(std::move(tensor)));
    return tensor_argument(handles_.back());
  }

 private:
  std::vector<int64_t> handles_;
};

}  // namespace fpt
