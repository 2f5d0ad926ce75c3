// SPDX-License-Identifier: MIT
/// Where the parts of this library lie: its Python package, its halves for versions of Python, what fits one torch.
/// Beside the library, or for a wheel in the environment of the Python that runs. Knows nothing of Python.
#pragma once

#include <string>
#include <vector>

#include "ftn_pytorch.h"

namespace fpt {

/// Whether this library is that of a wheel (<prefix>/lib/python3.N/site-packages/ftn_pytorch/lib), which has no Python
/// of its build and is not bound to one environment.
bool is_of_wheel() noexcept;

/// The Python that programs take if no variable names one: that of the build, or that of the environment in which this
/// library lies. Packages of a user or of an administrator have no Python in their prefix: the first one of this
/// version in PATH. Empty if the library lies in no environment.
std::string default_python();

/// What default_python is, in words.
const char* default_python_reason() noexcept;

/// Folder that holds the Python package of this library, found relative to the library itself; empty if it is not
/// there. Empty, too, for a library of a wheel, whose package the Python that runs finds among its own.
FPT_API std::string python_package_folder();

/// Nothing, or for a library of a wheel FPT_ERR_IMPORT where the environment of an executable has no ftn_pytorch, and
/// FPT_ERR_VERSION where it is of another version. `what` says how the executable was chosen.
void require_package(const std::string& python, const std::string& what);

/// Folders in which files of this library lie that fit one Python or one torch: that of the library itself, and for one
/// of a wheel those of the wheels among the packages of a Python executable, if one is given.
std::vector<std::string> own_folders(const std::string& python);

/// File of the half of this library for a version of Python, empty if there is none.
std::string python_half(const std::string& version, const std::string& python);

/// "3.11 and 3.12": the Pythons that this library has a half for beside it, for the text of a failure.
std::string versions_here();

}  // namespace fpt
