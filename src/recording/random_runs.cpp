// SPDX-License-Identifier: MIT
#include "recording/random_runs.hpp"

#include <torch/csrc/Generator.h>

#include <mutex>
#include <vector>

#include "recording/description.hpp"

namespace fpt::recording {
namespace {

thread_local bool draws_again = false;

/// This thread keeps the lock of the interpreter from here on, where that is asked for.
class DrawsAgain {
 public:
  explicit DrawsAgain(bool is_asked_for) : before_(draws_again) { draws_again = before_ || is_asked_for; }
  ~DrawsAgain() { draws_again = before_; }
  DrawsAgain(const DrawsAgain&) = delete;
  DrawsAgain& operator=(const DrawsAgain&) = delete;

 private:
  const bool before_;
};

using States = std::vector<at::Tensor>;

/// No tensor of Python is made or let go here: torch releases the lock of the interpreter for the latter.
at::Tensor state_of(at::Generator& generator) {
  const std::lock_guard alone(generator.mutex());
  return generator.get_state();
}

/// Setting a generator resets what cuDNN has drawn from it for its dropout, so it is not done in vain.
void set(at::Generator& generator, const at::Tensor& state) {
  if (state_of(generator).equal(state)) return;
  const std::lock_guard alone(generator.mutex());
  generator.set_state(state);
}

void set_all(std::vector<at::Generator>& generators, const States& states) {
  for (std::size_t i = 0; i < generators.size(); ++i) set(generators[i], states[i]);
}

/// What `run` gives from generators that are at `start`, or where they are, and whether it has left them at `end`. They
/// are left where they were found.
py::tuple run_from(const py::list& generators, const std::optional<py::list>& start, const std::optional<py::list>& end,
                   const py::object& run, const py::args& args, const py::kwargs& named) {
  const DrawsAgain lock_is_kept(!generators.empty());
  std::vector<at::Generator> used;
  for (const py::handle each : generators) used.push_back(THPGenerator_Unwrap(each.ptr()));
  const States expected = tensors_in(end.value_or(py::list()));
  States found;
  for (at::Generator& each : used) found.push_back(state_of(each));
  py::object result;
  bool is_at_end = true;
  try {
    if (start) set_all(used, tensors_in(*start));
    result = run(*args, **named);
    for (std::size_t i = 0; end && i < used.size(); ++i) is_at_end = is_at_end && state_of(used[i]).equal(expected[i]);
  } catch (...) {
    set_all(used, found);
    throw;
  }
  set_all(used, found);
  return py::make_tuple(result, is_at_end);
}

/// What `run` gives. Where it fails on its way, the generator is set back.
py::object run_or_rewind(const py::object& generator, const py::object& run, const py::object& why, bool keeps_lock,
                         const py::tuple& args, const py::dict& named) {
  const DrawsAgain lock_is_kept(keeps_lock);
  at::Generator used = THPGenerator_Unwrap(generator.ptr());
  const at::Tensor state = state_of(used);
  py::object found = run(args, named);
  if (found.is(not_implemented()) && py::cast<std::string>(py::tuple(why())[0]) == "failure") set(used, state);
  return found;
}

}  // namespace

OthersMayRun::OthersMayRun() {
  if (!draws_again) released_.emplace();
}

void add_random_runs(py::module_& module) {
  module.def(
      "run_from", &run_from, py::arg("generators"), py::arg("start").none(true), py::arg("end").none(true),
      py::arg("run"),
      "(run(...), whether that left the generators at `end`), from `start` or from where they are, and leave them "
      "where they were found. No other thread of Python runs meanwhile, if run is a function of C.");
  module.def("run_or_rewind", &run_or_rewind, py::arg("generator"), py::arg("run"), py::arg("why"),
             py::arg("keeps_lock"), py::arg("args"), py::arg("named"),
             "run(args, named), after which the generator is as before where that is NotImplemented and why() tells of "
             "a failure. keeps_lock: no other thread of Python runs meanwhile.");
}

}  // namespace fpt::recording
