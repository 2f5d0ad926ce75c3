// SPDX-License-Identifier: MIT
/// One value into one variable: what is allowed, and the copy. Knows nothing of Python.
#pragma once

#include <string>
#include <vector>

#include "arrays/arg.hpp"
#include "arrays/array.hpp"
#include "arrays/scalar.hpp"

namespace fpt {

/// A copy that has been checked and not been made yet. Those between memory of the host are made here.
struct CheckedCopy {
  Array source;
  Array target;
  Storage aside;             ///< memory of `source` where it had to be copied first
  unsigned char number[16];  ///< value of a number, which is the source then
  bool is_number = false;
  std::string text;  ///< for character variables
  char* text_target = nullptr;
  int64_t text_length = 0;

  /// The source is the target, element by element.
  bool is_in_place() const noexcept;
  /// The source of `other`, which may be this copy, is overwritten by this one before or while it is read.
  bool spoils(const CheckedCopy& other) const noexcept;
  bool is_on_host() const noexcept { return source.device.is_host() && target.device.is_host(); }
  void set_source_aside();
  void run();
};

/// A number, logical or string into `output`. Numbers of a script have one width only, so width is no reason to refuse
/// them; losing a value or a part is. FPT_ERR_ARGUMENT, FPT_ERR_DTYPE, FPT_ERR_SHAPE.
/// @param label  opens the messages: "result 1"
FPT_API CheckedCopy fit_scalar(const Scalar& value, const fpt_arg& output, const char* label);

/// An array, axes in the order of the script, into `output`. FPT_ERR_ARGUMENT, FPT_ERR_SHAPE, FPT_ERR_DTYPE.
/// @param type         what messages call its type: "Tensor"
/// @param same_layout  axis order of the script
/// @param cast         allow narrowing
CheckedCopy fit_array(const Array& seen, const char* type, const fpt_arg& output, bool same_layout, bool cast,
                      const char* label);

/// Make the copies, which are on the host. The source of one that the target of another overlaps is copied aside
/// before.
FPT_API void run_all(std::vector<CheckedCopy>& copies);

/// The most frequent copy without ceremony: an array, in Fortran axis order, of the very type and shape of its output
/// and elsewhere in memory. False, and nothing is done, if it is another case.
[[nodiscard]] FPT_API bool copy_plainly(const Array& source, const fpt_arg& output);

}  // namespace fpt
