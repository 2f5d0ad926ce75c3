// SPDX-License-Identifier: MIT
#include "python/thread_ends.hpp"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <optional>
#include <thread>

#include "base/per_thread.hpp"
#include "python/forks.hpp"
#include "python/lock_keeper.hpp"

#if defined(__GLIBC__)
extern "C" int __cxa_thread_atexit_impl(void (*destructor)(void*), void* object, void* library) noexcept;
#endif

namespace fpt {
namespace {

std::atomic<int> threads_leaving{0};

/// At the end of a thread that has called, its thread state goes: a program that makes a thread for each task would
/// lose 14 kB with each. Python's own thread-specific data is no longer there, so this is done by hand.
void leave_thread(void* state) {
  own_state = nullptr;
  --threads_that_called;
  ++threads_leaving;
  if (lock_is_gone.load() || is_idle_child || !may_use_python()) {
    // nothing can be done any more
  } else if (is_kept_elsewhere()) {
    leave_to_keeper(
        [](void* left) {
          PyThreadState_Clear(static_cast<PyThreadState*>(left));
          PyThreadState_Delete(static_cast<PyThreadState*>(left));
        },
        state);
  } else {
    stop_keeping_at_end_of_thread();
    if (current_state() != state) or_sleep([state] { PyEval_RestoreThread(static_cast<PyThreadState*>(state)); });
    PyThreadState_Clear(static_cast<PyThreadState*>(state));
    PyThreadState_DeleteCurrent();
  }
  --threads_leaving;
}

/// Before thread_local objects of torch, which the state holds, too, and before the state goes.
void let_objects_go(void* objects) {
  ++threads_leaving;
  if (!lock_is_gone.load()) release_with_lock([](void* dict) { PyDict_Clear(static_cast<PyObject*>(dict)); }, objects);
  --threads_leaving;
}

}  // namespace

std::atomic<bool> lock_is_gone{false};
std::atomic<int> threads_that_called{0};
__thread Py_ssize_t objects_of_thread = 0;

void leave_at_end_of_thread(PyThreadState* state) {
  // a key and no thread_local object: exit() destroys the latter, although the thread still runs
  static const std::optional<pthread_key_t> key = key_of_thread_ends(leave_thread);
  if (key) pthread_setspecific(*key, state);
}

void end_before_objects_of_thread(PyObject* objects) noexcept {
  objects_of_thread = PyDict_GET_SIZE(objects);
  if (syscall(SYS_gettid) == getpid()) return register_exit_handler();
  end_before_objects_until_now(let_objects_go, objects);
}

void end_before_objects_until_now([[maybe_unused]] void (*end)(void*), [[maybe_unused]] void* object) noexcept {
#if defined(__GLIBC__)
  __cxa_thread_atexit_impl(end, object, &threads_leaving);
#endif
}

void wait_for_leaving_threads() {
  if (threads_leaving.load() == 0) return;
  PyThreadState* state = PyGILState_Check() ? PyEval_SaveThread() : nullptr;
  for (int i = 0; threads_leaving.load() > 0 && i < 1000; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  if (state) or_sleep([state] { PyEval_RestoreThread(state); });
}

}  // namespace fpt
