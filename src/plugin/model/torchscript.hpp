// SPDX-License-Identifier: MIT
/// The headers of TorchScript, which nothing outside of this folder includes.
#pragma once

#include <torch/csrc/jit/api/function_impl.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/serialization/import.h>

#include "plugin/torch.hpp"
