// SPDX-License-Identifier: MIT
/// Copies between strided arrays of equal shape.
#pragma once

#include <optional>
#include <vector>

#include "arrays/arg.hpp"
#include "arrays/array.hpp"

namespace fpt {

/// Copy elements of one type; shapes and types agree, memory does not overlap.
void copy_same_type(const Array& source, const Array& target);

/// Copy with conversion of every element; shapes agree, memory does not overlap, is_castable() holds.
/// float16 and bfloat16 sources are not converted here: torch does that before.
void copy_converted(const Array& source, const Array& target);

/// Whichever of the two fits.
FPT_API void copy(const Array& source, const Array& target);

/// Memory with a copy of the elements, converted to a type and packed in the order of Fortran; `packed` describes it.
[[nodiscard]] FPT_API Storage packed_copy(const Array& array, int32_t dtype, Array& packed);

/// The elements of integers of rank 1 in host memory; none of another array.
[[nodiscard]] std::optional<std::vector<int64_t>> integers_of(const Array& array);

/// A number made of the elements and their order: another one when, but for a chance of 2^-64, one of them has changed.
FPT_API std::size_t digest(const Array& array);

/// The way back for an array that was converted into `seen`, which is contiguous and has been worked on: elements that
/// have changed. The others keep their value, which the conversion may have rounded.
FPT_API void copy_back(const Array& seen, const Array& array);

}  // namespace fpt
