// SPDX-License-Identifier: MIT
/// libtorch as the engine of tensors, without Python. Knows nothing of Python.
#pragma once

#include "values/engine.hpp"

namespace fpt {

/// Null where the plug-in cannot be used, where Python runs already, and with FTN_PYTORCH_DIRECT_TENSORS=0. Opens the
/// plug-in when it is first asked for.
Engine* direct_engine();

}  // namespace fpt
