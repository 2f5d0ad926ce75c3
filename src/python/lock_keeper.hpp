// SPDX-License-Identifier: MIT
/// The thread that keeps the interpreter lock between its calls, and what others leave to it: fpt_keep_lock().
#pragma once

namespace fpt {

/// Let this thread keep the lock from now on, or give it back; starts Python. See fpt_keep_lock().
void keep_lock(bool keeps);

/// Whether a thread keeps the lock.
bool lock_is_kept() noexcept;

/// True if another thread keeps the lock and this one would wait for it, as a thread of the program. Threads that
/// Python or torch have made wait, as they do for any other thread: nobody outside of a call waits for them.
bool is_kept_elsewhere() noexcept;

/// Let the thread that keeps the lock run `body` at its next call, with the lock.
void leave_to_keeper(void (*body)(void* objects), void* objects) noexcept;

/// The thread ends, and nobody keeps the lock any more if it did.
void stop_keeping_at_end_of_thread() noexcept;

}  // namespace fpt
