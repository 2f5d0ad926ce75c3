// SPDX-License-Identifier: MIT
/// Which Python, and whether it fits: paths and files only, nothing is started. Starting a process to ask it would
/// fork, which MPI programs may not do. Knows nothing of Python.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace fpt {

struct PythonChoice {
  std::string executable;  ///< what sys.executable becomes
  std::string reason;      ///< "FTN_PYTORCH_PYTHON", "VIRTUAL_ENV", ...
  std::string warning;     ///< why the active environment is not the one; empty if it is, or if there is none
};

/// The Python to start: `python` if not empty, else FTN_PYTORCH_PYTHON. One of these that does not fit is an error.
/// Without them that of VIRTUAL_ENV, or else of CONDA_PREFIX, if it fits and has torch where the build's Python has it.
/// Otherwise the build's Python, with a warning for the caller to give if there is an active environment.
///
/// @param libpython  path of the Python library in this process
/// Throws FPT_ERR_INTERPRETER, FPT_ERR_VERSION, FPT_ERR_PYTHONHOME with a sentence that says what to do.
PythonChoice choose_python(const std::string& python, const std::string& libpython);

/// Folders where a Python executable finds packages, in the order of its sys.path as far as files tell: the code
/// in path files (.pth) is not run.
std::vector<std::string> package_folders(const std::string& python);

/// Folder that holds the Python package of this library, found relative to the library itself; empty if it is not
/// there.
std::string python_package_folder();

/// The failure where a Python has no interpreter lock; `what` names it.
[[noreturn]] void fail_free_threaded(const std::string& what);

/// Path of the running program.
std::string program_path();

}  // namespace fpt
