// SPDX-License-Identifier: MIT
/// Stacks of the threads that Python and torch start. Knows nothing of Python.
#pragma once

namespace fpt {

/// Before the first of these threads. glibc takes the thread-local data of a program (`threadprivate`, `__thread`) out
/// of the stack of each thread, and makes that 2 MB where the limit is "unlimited": a few megabytes of such data leave
/// nothing. Where less than 2 MB are left, threads that name no size get 8 MB beside that data. So do those of OpenMP
/// unless OMP_STACKSIZE is set.
void leave_room_in_stacks() noexcept;

}  // namespace fpt
