// SPDX-License-Identifier: MIT
#include "python/lock_keeper.hpp"

#include <atomic>
#include <exception>
#include <mutex>
#include <vector>

#include "base/error.hpp"
#include "base/fpenv.hpp"
#include "base/kept_lock.hpp"
#include "ftn_pytorch.h"
#include "observe/log.hpp"
#include "python/interpreter.hpp"

namespace fpt {
namespace {

std::atomic<bool> is_kept{false};

struct Left {
  void (*body)(void* objects);
  void* objects;
};

/// What other threads have left, under its mutex.
struct Leftovers {
  std::mutex mutex;
  std::vector<Left> list;
};
Leftovers& leftovers() {
  static Leftovers& made = *new Leftovers;
  return made;
}

/// With the lock.
void take_care_of_leftovers() noexcept {
  std::vector<Left> list;
  {
    const std::lock_guard<std::mutex> lock(leftovers().mutex);
    list.swap(leftovers().list);
  }
  for (const Left& left : list) left.body(left.objects);
}

void* let_go() noexcept {
  // a program may let go of the lock itself, and the thread that ends Python must not
  if (python_end.load() != PythonEnd::none || !PyGILState_Check()) return nullptr;
  take_care_of_leftovers();
  return PyEval_SaveThread();
}

void take_again(void* let_go) noexcept {
  if (python_end.load() == PythonEnd::ended) return;  // in the call, by a procedure of the program
  or_sleep([let_go] { PyEval_RestoreThread(static_cast<PyThreadState*>(let_go)); });
}

/// Of a thread that has taken the lock for this, and of one whose program held it already, which decides on its end.
constexpr KeptLock taken{let_go, take_again}, held_already{let_go, take_again};

void forget() noexcept {
  kept_lock = nullptr;
  is_kept = false;
  lock_is_limited = python_end.load() != PythonEnd::none;
}

}  // namespace

void keep_lock(bool keeps) {
  ensure_started();
  require_python();
  if (keeps == (kept_lock != nullptr)) return;
  if (is_nested_call())
    fail(FPT_ERR_INTERPRETER, "a call that Python has made into the program cannot change who keeps Python's lock: ",
         "call ftn_pytorch_init before");
  if (!keeps) {
    const bool was_taken = kept_lock == &taken;
    forget();
    take_care_of_leftovers();
    if (was_taken && PyGILState_Check()) PyEval_SaveThread();
    return log(LogLevel::info, "Python's lock is released after each call again");
  }
  if (is_kept.exchange(true)) fail(FPT_ERR_INTERPRETER, "another thread keeps Python's lock already (keep_lock)");
  const bool is_held = PyGILState_Check() != 0;
  if (!is_held && interpreter_info().adopted) {
    is_kept = false;
    fail(FPT_ERR_INTERPRETER, "keep_lock: another part of the program has started Python, and this thread does not ",
         "hold its lock. Such a program knows of the lock, and this library takes it for each call");
  }
  if (!is_held) {
    {
      const InterpreterLock gil;
    }  // makes the thread state, which lasts
    or_sleep(PyGILState_Ensure);
  }
  kept_lock = is_held ? &held_already : &taken;
  lock_is_limited = true;
  log(LogLevel::info, "this thread keeps Python's lock between its calls (keep_lock)");
}

bool lock_is_kept() noexcept { return is_kept.load(); }

bool is_kept_elsewhere() noexcept {
  return is_kept.load() && !kept_lock && !PyGILState_Check() && (own_state || !PyGILState_GetThisThreadState());
}

void leave_to_keeper(void (*body)(void* objects), void* objects) noexcept {
  try {
    const std::lock_guard<std::mutex> lock(leftovers().mutex);
    leftovers().list.push_back({body, objects});
  } catch (const std::exception&) {
    return;  // no memory: it leaks
  }
}

void stop_keeping_at_end_of_thread() noexcept {
  if (kept_lock) forget();
}

}  // namespace fpt
