// SPDX-License-Identifier: MIT
/// The half of this library that knows Python, a file of its own: opened when something needs Python, so that libpython
/// is not in a process that needs none.
#pragma once

#include <string>

namespace fpt {

/// Open the half with Python, once; what it provides is there afterwards (provide_engine, provide_python_side).
/// FPT_ERR_INTERPRETER with the reason, FPT_ERR_VERSION for one of another build.
void open_python_library();

/// Called by the half with Python while it is opened. `version` and `abi` are those that it was built with.
/// True if they are ours.
bool announce_python_library(const char* version, int abi) noexcept;

/// Whether a Python runs in this process, ours or that of the program. Opens nothing.
bool python_runs() noexcept;

/// The libpython that the half with Python uses, as the build has found it; empty where it is not there any more.
std::string expected_libpython();

}  // namespace fpt
