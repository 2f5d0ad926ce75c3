// SPDX-License-Identifier: MIT
/// Which Python, and whether it fits: paths and files only, nothing is started. Starting a process to ask it would
/// fork, which MPI programs may not do. Knows nothing of Python.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "ftn_pytorch.h"

namespace fpt {

struct PythonChoice {
  std::string executable;  ///< what sys.executable becomes
  std::string version;     ///< "3.11"
  std::string prefix;      ///< of the installation behind it, which has the standard library
  std::string reason;      ///< "FTN_PYTORCH_PYTHON", "VIRTUAL_ENV", ...
  std::string warning;     ///< why the active environment is not the one; empty if it is, or if there is none
};

/// The Python library of this process, ours or that of the program; both empty if there is none.
struct LoadedPython {
  std::string file;
  std::string version;  ///< "3.11"
};

/// The Python to start: `python` if not empty, else FTN_PYTORCH_PYTHON. One of these that does not fit is an error.
/// Without them that of VIRTUAL_ENV, or else of CONDA_PREFIX, if it fits and has torch where the default one has it.
/// Otherwise the default one, with a warning for the caller to give if there is an active environment: the build's, or
/// for a library of a wheel that of the environment that it lies in. One that fits has a half of this library for its
/// version (python_half), and belongs to the Python library that is `loaded`, if there is one.
///
/// Throws FPT_ERR_INTERPRETER, FPT_ERR_VERSION, FPT_ERR_PYTHONHOME, FPT_ERR_IMPORT with a sentence that says what to
/// do.
PythonChoice choose_python(const std::string& python, const LoadedPython& loaded);

/// Folders where a Python executable finds packages, in the order of its sys.path as far as files tell: the code
/// in path files (.pth) is not run.
std::vector<std::string> package_folders(const std::string& python);

/// A file that can be executed and is no script.
bool is_program(const std::filesystem::path& file);

/// File of the libpython of a Python. FPT_ERR_INTERPRETER if it has none.
std::string libpython_of(const PythonChoice& choice);

/// The failure where a Python has no interpreter lock; `what` names it.
[[noreturn]] FPT_API void fail_free_threaded(const std::string& what);

/// Path of the running program.
FPT_API std::string program_path();

}  // namespace fpt
