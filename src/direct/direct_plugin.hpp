// SPDX-License-Identifier: MIT
/// The library of the direct path: whether there is one, and opening it. Knows nothing of Python.
#pragma once

#include <string>

#include "direct/fpt_direct.h"
#include "torch/torch_location.hpp"

namespace fpt {

/// The torch that the plug-in was built for; no folder where there is no plug-in. It lies in FTN_PYTORCH_EXTENSIONS, or
/// beside this library, or where the wheel in the chosen environment has put it; looked for once.
const TorchLocation& direct_torch();

/// How to get a plug-in that fits.
std::string direct_cure();

/// Why the plug-in cannot be used in this process as it is now; empty if nothing speaks against it. Opens nothing.
std::string direct_obstacle();

/// The plug-in, opened when it is first asked for. FPT_ERR_VERSION, FPT_ERR_IMPORT with what to do.
const fpt_direct_table& direct_plugin();

/// The plug-in if it has been opened, else null.
const fpt_direct_table* opened_direct_plugin() noexcept;

/// Throw the failure that the plug-in has just reported.
void require_direct(fpt_status status);

}  // namespace fpt
