// SPDX-License-Identifier: MIT
/// One value into one variable: what is allowed, and the copy. Knows nothing of Python; convert.hpp does.
#pragma once

#include <string>
#include <string_view>

#include "arrays/arg.hpp"
#include "arrays/array.hpp"
#include "ftn_pytorch.h"

namespace fpt {

/// A copy that has been checked and not been made yet. Made by the functions below, carried out by run().
struct CheckedCopy {
  Array source;
  Array target;
  unsigned char bytes[16];   ///< value of a number
  bool is_number = false;
  std::string text;          ///< for character variables
  char* text_target = nullptr;
  int64_t text_length = 0;

  /// The source is the target, element by element.
  bool is_in_place() const noexcept;
  /// The source of `other`, which may be this copy, is overwritten by this one before or while it is read.
  bool spoils(const CheckedCopy& other) const noexcept;
  /// Let the source be a copy of itself in the memory that is returned.
  Storage set_source_aside();
  void run();
};

/// The most frequent copy without ceremony: an array, in Fortran axis order, of the very type and shape of its output and
/// elsewhere in memory. False, and nothing is done, if it is another case.
bool copy_plainly(const Array& source, const fpt_arg& output);

/// Begin a copy into `output`, of which it is checked that it can receive anything. FPT_ERR_ARGUMENT.
CheckedCopy copy_into(const fpt_arg& output, const char* label);

/// A text. FPT_ERR_DTYPE, FPT_ERR_SHAPE where it is too long.
void fit_text(CheckedCopy& copy, std::string_view text, const fpt_arg& output, const char* label);

/// A variable for something else than a text. FPT_ERR_DTYPE for a character variable.
void fit_variable(CheckedCopy& copy, const fpt_arg& output, const char* type, const char* label);

/// A number of type FPT_BOOL, FPT_INT64, FPT_FLOAT64 or FPT_COMPLEX128 at `value`. Numbers of a script have one width
/// only, so width is no reason to refuse them; losing a value or a part is. FPT_ERR_DTYPE, FPT_ERR_SHAPE.
/// @param type  what texts call its type, "Python float"
void fit_number(CheckedCopy& copy, int32_t dtype, const void* value, const char* type, const char* label);

/// An array in the axis order of the script. FPT_ERR_SHAPE, FPT_ERR_DTYPE.
/// @param same_layout  axis order of the script
/// @param cast         allow narrowing
void fit_array(CheckedCopy& copy, const Array& seen, bool same_layout, bool cast, const char* label);

}  // namespace fpt
