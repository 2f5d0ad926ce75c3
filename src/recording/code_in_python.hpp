// SPDX-License-Identifier: MIT
/// Code of torch's compiler for Python, which `Replay` runs in place of its operators.
#pragma once

#include "recording/torch.hpp"

namespace fpt::recording {

/// Raises an exception of C++ in Python, as torch does it.
[[noreturn]] void rethrow_in_python(const std::exception_ptr& failure);

/// Give a module of Python the class `Code`.
void add_code(pybind11::module_& module);

}  // namespace fpt::recording
