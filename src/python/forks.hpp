// SPDX-License-Identifier: MIT
/// Children that the program forks, without Python's help, while Python runs.
#pragma once

#include <atomic>

namespace fpt {

/// In such a child until it calls: a thread that is not there may hold the interpreter lock, and what Python does at
/// the end is for its parent to do.
extern std::atomic<bool> is_idle_child;

/// Such a child is about to take the lock, so it is one no longer.
void note_call_of_child() noexcept;

/// With the lock held, once.
void watch_for_forks();

}  // namespace fpt
