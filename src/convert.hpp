// SPDX-License-Identifier: MIT
/// One result into one Fortran variable: what is allowed, and the copy. With the interpreter lock held.
#pragma once

#include <string>

#include "array.hpp"
#include "framework.hpp"
#include "ftn_pytorch.h"
#include "pyref.hpp"

namespace fpt {

/// A checked copy from a result to a variable of the caller. Made by prepare_copy(), carried out by run().
struct PreparedCopy {
  Array source;
  Array target;
  Ref keep;                  ///< holds the memory of `source`
  unsigned char bytes[16];   ///< value of a number
  bool is_number = false;
  std::string text;          ///< for character variables
  char* text_target = nullptr;
  int64_t text_length = 0;

  /// Carry it out; `clone` takes the source aside first, because a target of another copy overlaps it.
  void run();
  void clone_source();
};

/// Check that `value` fits into `output`. FPT_ERR_SHAPE, FPT_ERR_DTYPE, FPT_ERR_RESULT_TYPE with texts that begin with
/// `label`.
/// @param plain        what view_plain_tensor() said of `value`, or null if it was not asked
/// @param same_layout  axis order of the script
/// @param cast         allow narrowing
PreparedCopy prepare_copy(PyObject* value, const View* plain, const fpt_arg& output, bool same_layout, bool cast,
                          const char* label);

}  // namespace fpt
