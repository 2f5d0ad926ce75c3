// SPDX-License-Identifier: MIT
/// Which instructions of Python run in a call that is recorded, for `recording/footprints.py`.
///
/// A function of C is told of each. A trace function of Python is not as harmless: before Python 3.13, each call of one
/// writes the variables of closures back as they were before it (CPython issue 74929), and while it runs, another
/// thread comes in between the read and the write of `n += 1`, which no thread could do otherwise.
#pragma once

#include "recording/torch.hpp"

namespace fpt::recording {

/// Give a module of Python the class `Instructions`.
void add_footprints(pybind11::module_& module);

}  // namespace fpt::recording
