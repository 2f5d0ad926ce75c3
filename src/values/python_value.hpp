// SPDX-License-Identifier: MIT
/// Scalars and strings as Python objects. With the interpreter lock held.
#pragma once

#include "ftn_pytorch.h"
#include "python/pyref.hpp"

namespace fpt {

/// A scalar or string that an argument holds (is_value), as bool, int, float, complex or str. FPT_ERR_FREED for a
/// string that is not kept any more.
Ref python_value(const fpt_arg& arg);

}  // namespace fpt
