// SPDX-License-Identifier: MIT
/// Modules as the C interface names them: opened, replaced, made of the functions of torch; and what is diagnosed.
/// Knows nothing of Python.
#pragma once

#include <string>

#include "calls/runner.hpp"

namespace fpt {

/// What runs a file, the direct path or the Python side; see fpt_module_load().
std::unique_ptr<Runner> open_runner(int32_t kind, const std::string& file, Args options, Args config);

/// A new handle for a runner; what the old one named is freed when the last call of it has ended.
void replace_module(fpt_module* module, std::unique_ptr<Runner> runner);

/// The functions of torch as a module, one for each axis order, as long as the process. Needs no guard_call(): what is
/// there is only looked up.
fpt_module torch_module(bool same_layout);

/// Axis order of the first tensor among arguments for which it matters.
bool layout_of(Args args);

/// Look for what is wrong, and keep the lines for diagnosis(), or the reason why that cannot be told.
/// @param floating_point, team  of the caller, see fpenv.hpp
void diagnose(const char* floating_point, int team);
const std::string& diagnosis();

}  // namespace fpt
