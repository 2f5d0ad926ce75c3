// SPDX-License-Identifier: MIT
/// Copies between strided arrays of equal shape.
#pragma once

#include "arrays/array.hpp"

namespace fpt {

/// Copy elements of one type; shapes and types agree, memory does not overlap.
void copy_same_type(const Array& source, const Array& target);

/// Copy with conversion of every element; shapes agree, memory does not overlap, is_castable() holds.
/// float16 and bfloat16 sources are not converted here: torch does that before.
void copy_converted(const Array& source, const Array& target);

/// Whichever of the two fits.
void copy(const Array& source, const Array& target);

}  // namespace fpt
