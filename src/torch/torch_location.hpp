// SPDX-License-Identifier: MIT
/// Where a torch is and which version it has: paths and files only, nothing is started or imported.
/// Knows nothing of Python.
#pragma once

#include <string>

#include "ftn_pytorch.h"

namespace fpt {

struct TorchLocation {
  std::string folder;   ///< of the Python package, links resolved; empty where there is none
  std::string version;  ///< "2.13.0+cpu", empty if unknown
  std::string minor;    ///< "2.13" of a release as PyTorch's own wheels install it, which fits what a wheel of this
                        ///< library brings; empty for any other
};

/// The torch whose libraries are loaded in this process.
FPT_API TorchLocation loaded_torch();

/// The torch that a Python executable would import, as far as files tell; none for an empty name.
TorchLocation torch_of_python(const std::string& executable);

/// The package in a folder, if there is one.
FPT_API TorchLocation torch_in(const std::string& folder);

/// True for the same folder and the same version.
bool same_torch(const TorchLocation& a, const TorchLocation& b);

/// "torch 2.13.0 in /opt/env/lib/python3.11/site-packages/torch"
std::string text_of(const TorchLocation& torch);

}  // namespace fpt
