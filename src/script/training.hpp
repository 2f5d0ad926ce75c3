// SPDX-License-Identifier: MIT
/// What a training function of a script returns.
#pragma once

#include "calls/runner.hpp"
#include "python/pyref.hpp"

namespace fpt {

/// First and second result of a training function: a bool or 0-dim bool array, and a real number or 0-dim array.
/// FPT_ERR_TRAIN_RESULT. With the interpreter lock held.
Training training_of(PyObject* result, const CallName& call);

}  // namespace fpt
