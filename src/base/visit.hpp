// SPDX-License-Identifier: MIT
/// What a call, and whatever else runs code of Python or torch, changes of the thread and puts back.
#pragma once

#include "base/cuda_context.hpp"
#include "base/fpenv.hpp"

namespace fpt {

/// Around everything that runs code of Python or torch: calls, releases of objects, the end of Python. One inside
/// another changes nothing that the outermost one does not put back.
struct Visit {
  const HostState state;
  const CallerContext gpu;
};

/// The thread as the caller left it, inside a Visit: around procedures of the caller.
struct Leave {
  const CallerContextAgain gpu;
  const CallerState state;
};

}  // namespace fpt
