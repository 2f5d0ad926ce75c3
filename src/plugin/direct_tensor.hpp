// SPDX-License-Identifier: MIT
/// Tensors of libtorch behind torch_tensor.
#pragma once

#include <c10/util/MaybeOwned.h>

#include <atomic>
#include <mutex>

#include "plugin/torch.hpp"
#include "values/tensor.hpp"

namespace fpt::direct {

/// A tensor in use: borrowed from what keeps it, or owned.
using Held = c10::MaybeOwned<at::Tensor>;

/// All tensors of this engine. They are objects of Python, too, from the moment that Python asks for one.
class DirectTensor : public Tensor {
 public:
  bool is_of_libtorch() const noexcept override { return true; }
  Tensor& in_torch() override { return *this; }
  Tensor& in_python() override;
  /// As it is now.
  virtual Held value() = 0;

 protected:
  using Tensor::Tensor;
  virtual TensorPtr as_python() = 0;

 private:
  std::mutex mutex_;
  TensorPtr in_python_;
  std::atomic<Tensor*> known_{nullptr};
};

[[nodiscard]] TensorPtr tensor_of(at::Tensor tensor, bool same_layout);

/// The tensor of libtorch that a tensor is now, or that is made of its memory, as long as the tensor lives; undefined
/// for an object of Python that is of a class of its own, or no tensor.
[[nodiscard]] Held at_tensor_of(Tensor& tensor);
/// The same with the axes as in a layout.
[[nodiscard]] at::Tensor at_tensor_of(Tensor& tensor, bool same_layout);

/// The same two where Python may be the engine of this process, whose objects have tensors of libtorch behind them.
[[nodiscard]] at::Tensor shared_at_tensor_of(Tensor& tensor, bool same_layout);
[[nodiscard]] TensorPtr shared_tensor_of(at::Tensor tensor, bool same_layout);

}  // namespace fpt::direct
