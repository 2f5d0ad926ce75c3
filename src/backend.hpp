// SPDX-License-Identifier: MIT
/// Who runs a file: the direct path or the Python side.
#pragma once

#include <memory>
#include <string>

#include "direct/direct_module.hpp"
#include "ftn_pytorch.h"

namespace fpt {

/// The model in `file` on the direct path, or null where the Python side has to run it. Starts no interpreter.
///
/// backend="auto" takes the direct path for a saved model (kind 1) if the plug-in is there and its torch is the one that
/// Python uses in this process, or would use; else there is one warning that says why. backend="direct" fails instead.
std::unique_ptr<DirectModule> load_directly(int32_t kind, const std::string& file, const fpt_arg* options,
                                            int32_t noptions, int32_t nconfig);

}  // namespace fpt
