// SPDX-License-Identifier: MIT
/// The one interpreter of the process: starting or adopting it, its lock, its end, and its exceptions as errors.
#pragma once

#include <cxxabi.h>

#include <atomic>
#include <memory>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "python/pyref.hpp"

namespace fpt {

/// Start the interpreter or adopt the one that runs; does nothing once that has succeeded. See fpt_init().
void ensure_started(const std::string& python = {});

extern std::atomic<bool> interpreter_started;
inline bool is_started() noexcept { return interpreter_started.load(std::memory_order_acquire); }

/// What others in the process have done with Python: since `ending` only those who hold the lock may go on, for Python
/// ends other threads where they wait for it, and that ends a program in C++.
enum class PythonEnd { none, ending, ended };
extern std::atomic<PythonEnd> python_end;

/// True where the lock is not just there to be taken: Python has ended or is ending, or a thread keeps the lock.
extern std::atomic<bool> lock_is_limited;

/// Calls into Python that have begun and not ended; read and written with the lock.
extern int calls_running;

/// False where Python has ended, or is ending and this thread does not hold its lock.
bool may_use_python() noexcept;
/// FPT_ERR_INTERPRETER unless that is so.
void require_python();

/// Thread state of a thread that has called: made by its first call and kept until the thread ends, because making one
/// per call costs five times the call. initial-exec: the general model would call a function in each call.
extern __thread PyThreadState* own_state __attribute__((tls_model("initial-exec")));

/// Thread state that the lock is held with, on whatever thread. That of this thread belongs to no other, so finding it
/// here means that this thread holds the lock; PyGILState_Check says the same and takes 4 ns longer.
inline PyThreadState* current_state() noexcept {
#if PY_VERSION_HEX >= 0x030D0000
  return PyThreadState_GetUnchecked();
#else
  return _PyThreadState_UncheckedGet();
#endif
}

[[noreturn]] void sleep_for_ever() noexcept;

/// `take`, which takes the interpreter lock. A thread that waits there while Python ends is ended by Python (up
/// to 3.13) with pthread_exit(), whose unwinding no destructor and no noexcept function here survives: it sleeps
/// instead, which is what Python 3.14 does with such threads.
template <class Take>
inline auto or_sleep(Take take) {
#if defined(__GLIBCXX__)
  try {
    return take();
  } catch (abi::__forced_unwind&) {
    sleep_for_ever();
  }
#else
  return take();
#endif
}

/// How many objects the state of this thread had when it was looked at last.
extern __thread Py_ssize_t objects_of_thread __attribute__((tls_model("initial-exec")));
/// There are more, such as what torch keeps for the thread and destroys with it, without the lock (DTensor): have what
/// is left to do at the end of the thread done before that.
void end_before_objects_of_thread(PyObject* objects) noexcept;

/// Holds the interpreter lock while it lives. Cheap where the thread has called before, also inside a call. Throws
/// FPT_ERR_INTERPRETER unless may_use_python(), and where another thread keeps the lock.
class InterpreterLock {
 public:
  InterpreterLock() {
    if (lock_is_limited.load(std::memory_order_relaxed)) require_lock();
    PyThreadState* own = own_state;
    if (!own) {
      acquire_elsewhere();
    } else if (current_state() == own) {
      held_ = Held::before;
    } else {
      held_ = Held::own_state;
      or_sleep([own] { PyEval_RestoreThread(own); });
    }
  }
  ~InterpreterLock() {
    if (held_ == Held::own_state) {
      PyObject* objects = PyThreadState_GetDict();
      if (objects && PyDict_GET_SIZE(objects) > objects_of_thread) end_before_objects_of_thread(objects);
      PyEval_SaveThread();
    } else if (held_ == Held::foreign_state) {
      PyGILState_Release(foreign_);
    }
  }
  InterpreterLock(const InterpreterLock&) = delete;
  InterpreterLock& operator=(const InterpreterLock&) = delete;

 private:
  enum class Held { before, own_state, foreign_state };

  static void require_lock();
  void acquire_elsewhere() noexcept;

  Held held_;
  PyGILState_STATE foreign_ = PyGILState_UNLOCKED;
};

/// Lets go of the lock, which this thread holds, while it lives.
class InterpreterPause {
 public:
  InterpreterPause() noexcept : state_(PyEval_SaveThread()) {}
  ~InterpreterPause() {
    or_sleep([this] { PyEval_RestoreThread(state_); });
  }
  InterpreterPause(const InterpreterPause&) = delete;
  InterpreterPause& operator=(const InterpreterPause&) = delete;

 private:
  PyThreadState* const state_;
};

/// Run `body`, which lets go of Python objects, with the interpreter lock; not at all unless may_use_python(), nor in a
/// child that the program has forked and that has not called yet, whose lock a thread of its parent may hold. Where
/// another thread keeps the lock, that one does it at its next call. Letting go may run code of the script, so the
/// floating-point environment is that of calls, which a thread that holds the lock has already. For destructors, on any
/// thread.
void release_with_lock(void (*body)(void* objects), void* objects) noexcept;

/// An owner of Python references that may be let go on any thread, with or without the lock.
template <class T>
std::shared_ptr<T> share_references(T* owner) {
  return std::shared_ptr<T>(
      owner, [](T* held) { release_with_lock([](void* objects) { delete static_cast<T*>(objects); }, held); });
}

/// Throw the Python error that is set as an Error, described by the Python side. `context` says what was going on.
[[noreturn]] void throw_python_error(const std::string& context);

/// `object`, or throw the Python error that is set.
Ref checked(PyObject* object, const std::string& context);

/// A Python string. Names of files may hold what is no UTF-8, which Python gives back as it came.
Ref text_object(std::string_view text);

/// A function of ftn_pytorch._embed; borrowed, lives as long as the process.
PyObject* embed(const char* function);

/// Make sure that our exit handler runs before those of libraries that have been loaded since it was last registered.
void register_exit_handler();

/// Threads of the program that have called Python and live, without this one.
int other_threads() noexcept;

/// What makes the module that the core offers to Python, with the lock held; called once, at start or adoption. True.
bool provide_core_module(PyObject* (*make)()) noexcept;

/// Facts for diagnosis: executable, reason, library, adopted. Empty values before the start.
struct InterpreterInfo {
  std::string executable, reason, library;
  bool adopted = false;
};
const InterpreterInfo& interpreter_info();

}  // namespace fpt
