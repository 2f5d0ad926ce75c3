// SPDX-License-Identifier: MIT
/// A function of a script behind a callable that measures it, describes it for the log and records it. Used only while
/// observation is on, so the call of a script knows nothing of it.
#pragma once

#include <cstdint>
#include <string>

#include "python/pyref.hpp"

namespace fpt {

/// @param runner  the runner that `function` belongs to
/// @param name, flags  what it was bound with
/// Returns a callable with the behaviour of `function`: arguments and result are passed on as they are.
Ref observed_function(Ref function, PyObject* runner, const std::string& name, int32_t flags);

}  // namespace fpt
