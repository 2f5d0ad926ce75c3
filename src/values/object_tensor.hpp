// SPDX-License-Identifier: MIT
/// Tensors that are objects of Python. With the interpreter lock.
#pragma once

#include "python/pyref.hpp"
#include "values/tensor.hpp"

namespace fpt {

/// An array object of Python as a tensor: that of libtorch behind it, where libtorch computes.
TensorPtr tensor_of_object(Ref object, bool same_layout);
/// The same as a tensor that stays an object of Python.
TensorPtr object_tensor(Ref object, bool same_layout);

/// The array object of Python behind a tensor; none where none was made yet.
Ref object_of(Tensor& tensor);

/// Address of the at::Tensor behind an object of Python; null for one of a class of its own, and for no tensor.
void* address_of_object(PyObject* object);

/// The tensor of torch behind a tensor, made of its memory if need be, and the same as long as the tensor lives.
Ref torch_object_of(Tensor& tensor);

/// See Engine.
TensorPtr tensor_of_memory(const Array& seen, std::shared_ptr<void> owner, bool same_layout);

}  // namespace fpt
