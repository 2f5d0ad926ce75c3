// SPDX-License-Identifier: MIT
/// The library of the direct path: whether there is one that can be used. Knows nothing of Python.
#pragma once

#include <string>

#include "torch/torch_location.hpp"

namespace fpt {

/// The torch that the plug-in is for; no folder where no plug-in fits. It lies in FTN_PYTORCH_EXTENSIONS, or beside
/// this library, or where the wheel in the chosen environment has put it, there or in the folder of a minor version of
/// torch (torch-2.13); looked for once.
const TorchLocation& direct_torch();

/// The plug-in, and the version of torch that it was compiled with; empty where direct_torch has no folder.
std::string text_of_plugin();

/// "the direct path was built for torch 2.13 in FOLDER"
std::string text_of_fit();

/// How to get a plug-in that fits.
std::string direct_cure();

/// Why the plug-in cannot be used in this process as it is now; empty if nothing speaks against it. Opens nothing.
std::string direct_obstacle();

}  // namespace fpt
