// SPDX-License-Identifier: MIT
/// Which Python, and whether it fits: paths and files only, nothing is started. Starting a process to ask it would
/// fork, which MPI programs may not do.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace fpt {

struct PythonChoice {
  std::string executable;  ///< what sys.executable becomes
  std::string reason;      ///< "FTN_PYTORCH_PYTHON", "VIRTUAL_ENV", ...
};

/// The Python to start: `python` if not empty, else FTN_PYTORCH_PYTHON, VIRTUAL_ENV, CONDA_PREFIX, the build's Python.
/// The first one that is set decides; if it does not fit that is an error, not a reason to look further.
///
/// @param libpython  path of the Python library in this process
/// Throws FPT_ERR_INTERPRETER, FPT_ERR_VERSION, FPT_ERR_PYTHONHOME with a sentence that says what to do.
PythonChoice choose_python(const std::string& python, const std::string& libpython);

/// Folders where a Python executable finds packages, in the order of its sys.path as far as files tell. Path files
/// (.pth) are not followed.
std::vector<std::string> package_folders(const std::string& python);

/// Folder that holds the Python package of this library, found relative to the library itself; empty if it is not
/// there.
std::string python_package_folder();

/// File of the shared object that contains `address`, all links resolved; empty if unknown.
std::string object_file_of(const void* address);

/// A path with its links followed; as it is where that cannot be done.
std::filesystem::path resolved(const std::filesystem::path& path);

/// Path of the running program.
std::string program_path();

}  // namespace fpt
