// SPDX-License-Identifier: MIT
/// Procedures of the program, called by Python. With the interpreter lock.
#pragma once

#include <string>

#include "ftn_pytorch.h"
#include "python/pyref.hpp"

namespace fpt {

/// Number of outputs of a procedure. FPT_ERR_HOOK if there is none of that name.
int32_t outputs_of_procedure(const std::string& name);

/// Call a procedure on tensors of torch and return what it made, a tuple. Others may have the interpreter lock while
/// the procedure runs, in the floating-point environment of the program.
/// @param tensors  tuple of tensors, axes in reverse of their order in Fortran
/// @param count    number of tensors that it makes
/// FPT_ERR_HOOK, FPT_ERR_PYTHON for a status that it returned, FPT_ERR_RESULT_COUNT for a tensor that it did not make.
Ref call_procedure(const std::string& name, bool adjoint, PyObject* tensors, int32_t count);

/// The same for one without a name and inputs, which makes one tensor: that tensor, with its graph, in a tuple. What it
/// failed with is the failure of this.
Ref call_closure(fpt_procedure closure, void* context);

}  // namespace fpt
