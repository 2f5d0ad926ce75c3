// SPDX-License-Identifier: MIT
/// The one interpreter of the process: starting or adopting it, its lock, its end, and its exceptions as errors.
#pragma once

#include <string>

#include "error.hpp"
#include "pyref.hpp"

namespace fpt {

/// Start the interpreter or adopt the one that runs; does nothing once that has succeeded. See fpt_init().
void ensure_started(const std::string& python = {});

bool is_started() noexcept;

/// Holds the interpreter lock while it lives. Cheap where the thread has called before, also inside a call.
class InterpreterLock {
 public:
  InterpreterLock() noexcept;
  ~InterpreterLock();
  InterpreterLock(const InterpreterLock&) = delete;
  InterpreterLock& operator=(const InterpreterLock&) = delete;

 private:
  enum class Held { before, own_state, foreign_state } held_;
  PyGILState_STATE foreign_ = PyGILState_UNLOCKED;
};

/// Throw the Python error that is set as an Error, described by the Python side. `context` says what was going on.
[[noreturn]] void throw_python_error(const std::string& context);

/// `object`, or throw the Python error that is set.
Ref checked(PyObject* object, const std::string& context);

/// A function of ftn_pytorch._embed; borrowed, lives as long as the process.
PyObject* embed(const char* function);

/// Make sure that our exit handler runs before those of libraries that have been loaded since it was last registered.
void register_exit_handler();

/// Facts for diagnosis: executable, reason, library, adopted. Empty values before the start.
struct InterpreterInfo {
  std::string executable, reason, library;
  bool adopted = false;
};
const InterpreterInfo& interpreter_info();

}  // namespace fpt
