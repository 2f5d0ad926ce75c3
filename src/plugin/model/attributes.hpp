// SPDX-License-Identifier: MIT
/// What a model keeps beside its parameters and buffers: numbers, texts, tensors and lists of them, which its methods
/// may replace.
#pragma once

#include <string>
#include <vector>

#include "plugin/model/torchscript.hpp"

namespace fpt::direct {

/// Names of attributes of one model that another has not, or has with another type; empty where all fit.
std::vector<std::string> different_attributes(const torch::jit::Module& from, const torch::jit::Module& to);

/// Give one model the attributes of another, which fit. The two share the values then.
void take_attributes(const torch::jit::Module& from, const torch::jit::Module& to);

}  // namespace fpt::direct
