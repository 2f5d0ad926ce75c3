// SPDX-License-Identifier: MIT
#include "base/kept_lock.hpp"

namespace fpt {

__thread const KeptLock* kept_lock = nullptr;

}  // namespace fpt
