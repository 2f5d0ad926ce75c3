// SPDX-License-Identifier: MIT
/// How many threads the program wants torch to use: kept for whatever brings torch into the process later.
#pragma once

#include <cstdint>

#include "ftn_pytorch.h"

namespace fpt {

/// 0 as long as the program has said nothing.
FPT_API int64_t wanted_threads() noexcept;

/// FPT_ERR_ARGUMENT for less than one, and for more than 32 bits hold.
void want_threads(int64_t n);

}  // namespace fpt
