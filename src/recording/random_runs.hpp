// SPDX-License-Identifier: MIT
/// Runs that draw the same random numbers again. Torch's generators are those of a process: while one is set back, no
/// other thread of Python may draw from it.
#pragma once

#include <optional>

#include "recording/torch.hpp"

namespace fpt::recording {

/// Other threads of Python may run as long as it lives, unless this thread draws again. The lock is held before and
/// after.
class OthersMayRun {
 public:
  OthersMayRun();

 private:
  std::optional<py::gil_scoped_release> released_;
};

/// Give a module of Python the functions `run_from` and `run_or_rewind`.
void add_random_runs(py::module_& module);

}  // namespace fpt::recording
