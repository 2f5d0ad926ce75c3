// SPDX-License-Identifier: MIT
/// How the elements of two tensors lie in memory.
#pragma once

#include "ftr/torch.hpp"

namespace ftr {

/// Whether two tensors show the same of the same memory.
[[nodiscard]] inline bool is_one_tensor(const at::Tensor& one, const at::Tensor& other) {
  return one.data_ptr() == other.data_ptr() && one.scalar_type() == other.scalar_type() &&
         one.sizes() == other.sizes() && one.strides() == other.strides();
}

/// Whether an element of a tensor lies where that of another one of this shape does. The stride of an axis of one
/// element says nothing.
[[nodiscard]] inline bool is_laid_out_as(const at::Tensor& like, const at::Tensor& tensor) {
  for (int64_t axis = 0; axis < like.dim(); ++axis)
    if (tensor.stride(axis) != like.stride(axis) && like.size(axis) != 1) return false;
  return true;
}

}  // namespace ftr
