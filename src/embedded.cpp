// SPDX-License-Identifier: MIT
/// The Python module `_ftn_pytorch`, which the Python package uses to speak to the core.
#include <pybind11/embed.h>

#include "error.hpp"
#include "ftn_pytorch.h"

namespace py = pybind11;

PYBIND11_EMBEDDED_MODULE(_ftn_pytorch, module) {
  module.doc() = "What the core of ftn_pytorch offers to its Python package.";
  module.def("version", [] { return FPT_VERSION; }, "Version of the library, 'major.minor.patch'.");
  module.def("warn", [](const std::string& text) { fpt::warn(text); }, py::arg("text"),
             "Send a warning to the handler that the program has registered.");
}
