// SPDX-License-Identifier: MIT
/// Whether the direct path runs a file.
#pragma once

#include <memory>
#include <string>

#include "calls/options.hpp"
#include "calls/runner.hpp"

namespace fpt {

/// Load a file with the direct path where its options and its kind (see fpt_module_load()) ask for it; null for what
/// the Python side runs.
///
/// backend="auto" takes the direct path for a saved model (kind 1) if the plug-in is there and its torch is the one
/// that Python uses in this process, or would use; else there is one warning that says why. backend="direct" fails
/// instead. The direct path starts no interpreter. FPT_ERR_ARGUMENT for options among `given` that need one.
std::unique_ptr<Runner> open_directly(int32_t kind, const std::string& file, const Options& options, Args given,
                                      Args config);

}  // namespace fpt
