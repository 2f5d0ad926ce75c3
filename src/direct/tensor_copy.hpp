// SPDX-License-Identifier: MIT
/// A tensor into memory of the program. Knows nothing of Python.
#pragma once

#include "values/tensor.hpp"

namespace fpt {

/// Copy a tensor into an output, as fpt_tensor_copy() says. Memory of the host needs no torch.
void copy_tensor(Tensor& tensor, const fpt_arg& output, bool cast);

}  // namespace fpt
