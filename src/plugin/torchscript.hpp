// SPDX-License-Identifier: MIT
/// TorchScript, a library of its own beside the plug-in, which opens it for the first file: torch has deprecated
/// torch.jit, and a libtorch without it runs everything else.
#pragma once

#include <memory>
#include <string>

#include "plugin/model.hpp"

namespace fpt::direct {

/// Read a TorchScript file. FPT_ERR_FILE, FPT_ERR_FORMAT; FPT_ERR_IMPORT with the reason where the library is missing
/// or cannot be opened.
std::unique_ptr<Model> load_script(Settings settings);

/// Why there can be no TorchScript; empty if nothing speaks against it. Opens nothing.
std::string torchscript_obstacle();

using ScriptLoader = std::unique_ptr<Model> (*)(Settings settings);
/// Called while the library is loaded.
FPT_API void provide_torchscript(ScriptLoader loader) noexcept;

}  // namespace fpt::direct
