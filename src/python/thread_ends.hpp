// SPDX-License-Identifier: MIT
/// What is left to do with Python when a thread ends that has called, while the program goes on.
#pragma once

#include <atomic>

#include "python/interpreter.hpp"

namespace fpt {

/// The program ends, with Python's lock: nobody gets it any more.
extern std::atomic<bool> lock_is_gone;

/// Threads with a state of ours.
extern std::atomic<int> threads_that_called;

/// Have the state of this thread go with it.
void leave_at_end_of_thread(PyThreadState* state);

/// Have `end` called when this thread ends, before the thread_local objects that it has now are destroyed.
/// Without glibc it is not called.
void end_before_objects_until_now(void (*end)(void* object), void* object) noexcept;

/// Threads that are about to end need the lock once more, which the end of the program keeps for good. Somebody may
/// join them later. Called with the lock or without.
void wait_for_leaving_threads();

}  // namespace fpt
