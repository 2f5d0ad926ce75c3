// SPDX-License-Identifier: MIT
/// Procedures of the program that Python calls: their names. Knows nothing of Python.
#pragma once

#include <string>

#include "ftn_pytorch.h"

namespace fpt {

struct Procedure {
  fpt_procedure forward, adjoint;
  void* context;
  int32_t outputs;
};

/// Make a procedure known, or replace one. FPT_ERR_ARGUMENT without a name or a procedure.
void register_procedure(std::string name, fpt_procedure forward, fpt_procedure adjoint, void* context, int32_t outputs);

/// FPT_ERR_HOOK if there is none of that name.
FPT_API Procedure procedure_at(const std::string& name);

}  // namespace fpt
