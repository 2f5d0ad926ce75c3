// SPDX-License-Identifier: MIT
/// Looks at tensors for the half of the library with Python: see base/tensor_looks.hpp.
#pragma once

#include <pybind11/pybind11.h>

namespace fpt::recording {

/// As "tensor_looks" of the module.
void add_tensor_looks(pybind11::module_& module);

}  // namespace fpt::recording
