// SPDX-License-Identifier: MIT
/// One result of a script into one Fortran variable. With the interpreter lock held.
#pragma once

#include <string>

#include "arrays/array.hpp"
#include "arrays/fit.hpp"
#include "torch/framework.hpp"
#include "ftn_pytorch.h"
#include "python/pyref.hpp"

namespace fpt {

/// A checked copy from a result to a variable of the caller. Made by prepare_copy(), carried out by run().
struct PreparedCopy : CheckedCopy {
  Ref keep;  ///< holds the memory of `source`

  /// Take the source aside, because a target of another copy overlaps it.
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
