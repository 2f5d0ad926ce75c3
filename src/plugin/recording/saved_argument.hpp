// SPDX-License-Identifier: MIT
/// Arguments of an operator as a file describes them, in the types that the operator declares.
#pragma once

#include "plugin/recording/saved_tape.hpp"

namespace fpt::direct {

/// FPT_ERR_FORMAT for what the operator cannot be given.
[[nodiscard]] recording::Argument read_argument(const c10::IValue& described, const c10::Argument& declared,
                                                const SavedContext& context);

/// Pairs of a code and what it needs.
[[nodiscard]] recording::Formula read_formula(const c10::IValue& described);

/// Pairs (a, b) that mean a * B + b.
[[nodiscard]] std::vector<recording::Size> read_sizes(const c10::IValue& described);

/// "float32" and so on; FPT_ERR_FORMAT for another name.
[[nodiscard]] at::ScalarType read_dtype(const std::string& name);

}  // namespace fpt::direct
