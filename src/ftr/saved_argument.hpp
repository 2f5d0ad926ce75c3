// SPDX-License-Identifier: MIT
/// Arguments of an operator as a file describes them, in the types that the operator declares.
#pragma once

#include "ftr/saved_tape.hpp"

namespace ftr {

/// Why::format for what the operator cannot be given.
[[nodiscard]] Argument read_argument(const c10::IValue& described, const c10::Argument& declared,
                                     const SavedContext& context);

/// Pairs of a code and what it needs.
[[nodiscard]] Formula read_formula(const c10::IValue& described);

/// Pairs (a, b) that mean a * B + b.
[[nodiscard]] std::vector<Size> read_sizes(const c10::IValue& described);

}  // namespace ftr
