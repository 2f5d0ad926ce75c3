// SPDX-License-Identifier: MIT
#include "python/forks.hpp"

#include <pthread.h>
#include <pybind11/pybind11.h>

#include "python/interpreter.hpp"
#include "python/lock_keeper.hpp"

namespace py = pybind11;

namespace fpt {
namespace {

void note_child(bool is_idle) noexcept {
  is_idle_child = is_idle;
  lock_is_limited = is_idle || python_end.load() != PythonEnd::none || lock_is_kept();
}

}  // namespace

std::atomic<bool> is_idle_child{false};

void note_call_of_child() noexcept { note_child(false); }

void watch_for_forks() {
  pthread_atfork(nullptr, nullptr, [] { note_child(true); });
  // a fork by Python gives the child the lock, after the handlers of every fork
  py::module_::import("os").attr("register_at_fork")(py::arg("after_in_child") = py::cpp_function(note_call_of_child));
}

}  // namespace fpt
