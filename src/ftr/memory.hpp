// SPDX-License-Identifier: MIT
/// How the elements of two tensors lie in memory.
#pragma once

#include <numeric>

#include "ftr/torch.hpp"

namespace ftr {

/// Whether two tensors show the same of the same memory.
[[nodiscard]] inline bool is_one_tensor(const at::Tensor& one, const at::Tensor& other) {
  return one.data_ptr() == other.data_ptr() && one.scalar_type() == other.scalar_type() &&
         one.sizes() == other.sizes() && one.strides() == other.strides();
}

/// Whether two tensors may have bytes in common. Sections of an array that lie between each other have none.
[[nodiscard]] inline bool may_overlap(const at::Tensor& one, const at::Tensor& other) {
  if (one.numel() == 0 || other.numel() == 0) return false;
  int64_t step = 0;  // elements begin at multiples of that
  const auto length_of = [&step](const at::Tensor& tensor) {
    auto length = static_cast<int64_t>(tensor.itemsize());
    for (int64_t axis = 0; axis < tensor.dim(); ++axis) {
      if (tensor.size(axis) == 1) continue;
      const int64_t stride = tensor.stride(axis) * static_cast<int64_t>(tensor.itemsize());
      length += (tensor.size(axis) - 1) * stride;
      step = std::gcd(step, stride);
    }
    return length;
  };
  const int64_t length = length_of(one), length_of_other = length_of(other);
  const int64_t apart =
      static_cast<const char*>(other.const_data_ptr()) - static_cast<const char*>(one.const_data_ptr());
  if (apart >= length || -apart >= length_of_other) return false;
  if (step == 0) return true;
  const int64_t rest = (apart % step + step) % step;
  return rest < static_cast<int64_t>(one.itemsize()) || rest + static_cast<int64_t>(other.itemsize()) > step;
}

/// Whether an element of a tensor lies where that of another one of this shape does. The stride of an axis of one
/// element says nothing.
[[nodiscard]] inline bool is_laid_out_as(const at::Tensor& like, const at::Tensor& tensor) {
  for (int64_t axis = 0; axis < like.dim(); ++axis)
    if (tensor.stride(axis) != like.stride(axis) && like.size(axis) != 1) return false;
  return true;
}

}  // namespace ftr
