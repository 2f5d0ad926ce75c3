// SPDX-License-Identifier: MIT
/// The half of this library that knows Python, a file of its own: opened when something needs Python, so that libpython
/// is not in a process that needs none.
#pragma once

#include <string>

#include "python/environment.hpp"

namespace fpt {

/// Open the half with Python, once; what it provides is there afterwards (provide_engine, provide_python_side). There
/// is one for each version of Python. It takes the functions of Python from the process, so the libpython of the Python
/// that is chosen is opened before it, unless the program has one. `python` is that of choose_python.
/// FPT_ERR_INTERPRETER with the reason, FPT_ERR_VERSION for one of another build; failures of choose_python.
void open_python_library(const std::string& python = {});

/// Called by the half with Python while it is opened. `version` and `abi` are those that it was built with.
/// True if they are ours.
FPT_API bool announce_python_library(const char* version, int abi) noexcept;

/// Whether a Python runs in this process, ours or that of the program. Opens nothing.
bool python_runs() noexcept;

/// The Python library in this process, also one that other libraries cannot see.
LoadedPython loaded_python();

/// What choose_python says; it is not asked twice for what the half with Python was opened for.
FPT_API PythonChoice python_to_start(const std::string& python);

/// The executable of the Python that would run in this process; empty if none can.
std::string chosen_executable();

}  // namespace fpt
