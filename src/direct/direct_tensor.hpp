// SPDX-License-Identifier: MIT
/// Tensors of libtorch behind torch_tensor, as the plug-in holds them. Knows nothing of Python.
#pragma once

#include <memory>

#include "direct/fpt_direct.h"
#include "values/tensor.hpp"

namespace fpt {

using RawTensor = std::shared_ptr<fpt_direct_tensor>;

/// Takes a tensor of the plug-in over.
[[nodiscard]] TensorPtr tensor_of_raw(fpt_direct_tensor* raw, bool same_layout);

/// A tensor of Python. @param address  of its at::Tensor, which is copied: the tensor is the same
[[nodiscard]] TensorPtr tensor_at_address(void* address, bool same_layout);

/// Whatever gradient a tensor of libtorch has when this is used.
[[nodiscard]] TensorPtr gradient_of_raw(TensorPtr source);

/// The tensor of libtorch that a tensor is now, or that is made of its memory; null for an object of Python that is of a
/// class of its own, or no tensor.
/// FPT_ERR_ARGUMENT for a gradient that is not there.
[[nodiscard]] RawTensor raw_of(Tensor& tensor);

}  // namespace fpt
