// SPDX-License-Identifier: MIT
/// Places in the state of a file where numbers of optimizers and the random generator stand, for who writes it again.
#pragma once

#include <string>

#include "ftr/torch.hpp"

namespace ftr {

/// A text, and where its holes are: a list of (begin, end, name of the hole).
struct FilledText {
  std::string text;
  c10::IValue holes;
};

/// A list of the texts between the holes, and of their names. Why::format for places that are not in it, in their
/// order.
[[nodiscard]] c10::IValue pieces_of(const FilledText& filled);

}  // namespace ftr
