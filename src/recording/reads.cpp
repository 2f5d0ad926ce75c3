// SPDX-License-Identifier: MIT
#include "recording/reads.hpp"

namespace fpt::recording {
namespace {

/// What becomes the `__getattribute__` of a class. A function of C: behind one of Python, another thread could come in
/// between the read and the write of `self.n += 1`, in all threads.
/// @param ask  the one of the class
/// @param seen  a list of a function, which is told what this thread asks for before it gets it; nobody is told once
///   the list is empty
py::object telling(const py::object& ask, const py::list& seen) {
  return py::cpp_function(
      [ask, seen, thread = PyThread_get_thread_ident()](const py::object& value, const py::object& name) {
        if (!seen.empty() && PyThread_get_thread_ident() == thread) seen[0](value, name);
        return ask(value, name);
      },
      py::name("__getattribute__"), py::is_method(py::none()));
}

}  // namespace

void add_reads(py::module_& module) {
  module.def("telling", &telling, py::arg("ask"), py::arg("seen"),
             "A __getattribute__ that tells this function what is asked for, and then asks that one.");
}

}  // namespace fpt::recording
