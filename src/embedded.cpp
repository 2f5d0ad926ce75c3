// SPDX-License-Identifier: MIT
/// The Python module `_ftn_pytorch`, which the Python package uses to speak to the core.
#include <pybind11/pybind11.h>

#include <memory>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/file_lock.hpp"
#include "base/mpi_sum.hpp"
#include "base/program_libraries.hpp"
#include "ftn_pytorch.h"
#include "node/node_worker.hpp"
#include "observe/choice.hpp"
#include "observe/log.hpp"
#include "python/interpreter.hpp"
#include "python/lock_keeper.hpp"
#include "script/script_use.hpp"
#include "torch/framework.hpp"
#include "torch/torch_location.hpp"
#include "values/procedure_calls.hpp"

namespace py = pybind11;

namespace {

/// Failures of the core as the exception of the package, which keeps the status.
void translate(std::exception_ptr failure) {  // NOLINT(performance-unnecessary-value-param): what pybind11 calls
  try {
    if (failure) std::rethrow_exception(failure);
  } catch (const fpt::Error& error) {
    const std::string status =
        std::string(fpt::status_name(error.status())).substr(std::string("FTN_PYTORCH_ERR_").size());
    const py::object type = py::module_::import("ftn_pytorch.errors").attr("FtnPytorchError");
    PyErr_SetObject(type.ptr(), py::make_tuple(status, error.text()).ptr());
  }
}

void* pointer(std::uintptr_t address) { return reinterpret_cast<void*>(address); }  // NOLINT(performance-no-int-to-ptr)

std::vector<void*> pointers(const py::sequence& addresses) {
  std::vector<void*> found;
  for (const auto each : addresses) found.push_back(pointer(each.cast<std::uintptr_t>()));
  return found;
}

fpt::Reduction reduction(bool is_largest) { return is_largest ? fpt::Reduction::largest : fpt::Reduction::sum; }

void define_ranks(py::module_& module) {
  static PyObject* known = nullptr;  // pybind11 makes a class once, and a start that has failed is tried again
  if (known) {
    module.attr("MpiSum") = py::handle(known);
    return;
  }
  py::class_<fpt::MpiSum> ranks(module, "MpiSum", py::module_local(),
                                "The ranks of a communicator, by its handle of Fortran.");
  known = ranks.inc_ref().ptr();
  ranks
      .def(py::init([](int handle, double limit) {
             auto made = std::make_unique<fpt::MpiSum>(handle, limit);
             made->call_meanwhile([] {
               const py::gil_scoped_acquire lock;
               if (PyErr_CheckSignals() != 0) throw py::error_already_set();
             });
             return made;
           }),
           py::arg("handle"), py::arg("limit"))
      .def_property_readonly("rank", &fpt::MpiSum::rank)
      .def_property_readonly("size", &fpt::MpiSum::size)
      .def_property_readonly("is_usable", &fpt::MpiSum::is_usable)
      .def("give_up", &fpt::MpiSum::give_up, py::arg("why"), py::call_guard<py::gil_scoped_release>(),
           "Refuse all that follows.")
      .def(
          "exchange",
          [](fpt::MpiSum& ranks, double limit, const std::string& purpose, const std::string& name,
             const py::sequence& addresses) {
            std::vector<void*> arguments = pointers(addresses);
            const py::gil_scoped_release others;
            ranks.wait_up_to(limit);
            ranks.exchange(name.c_str(), std::move(arguments), purpose.c_str());
          },
          py::arg("limit"), py::arg("purpose"), py::arg("name"), py::arg("addresses"),
          "One operation of all ranks; the caller keeps its memory if it does not end.")
      .def(
          "combine",
          [](fpt::MpiSum& ranks, double limit, const std::string& purpose, std::uintptr_t address, std::int64_t count,
             int dtype, bool is_largest, std::int64_t call, std::int64_t network) {
            const py::gil_scoped_release others;
            ranks.wait_up_to(limit);
            ranks.combine(pointer(address), count, dtype, reduction(is_largest), purpose.c_str(), {call, network});
          },
          py::arg("limit"), py::arg("purpose"), py::arg("address"), py::arg("count"), py::arg("dtype"),
          py::arg("is_largest"), py::arg("call"), py::arg("network"),
          "Replace numbers by their sums over the ranks, or by the largest ones.");
}

/// What waits does not hold the interpreter lock, and Python's handlers of signals run nevertheless.
void define_mpi(py::module_& module) {
  module.def(
      "call_mpi",
      [](const std::string& purpose, const std::string& name, const py::sequence& addresses) {
        std::vector<void*> arguments = pointers(addresses);
        const py::gil_scoped_release others;
        fpt::call_mpi(purpose.c_str(), name.c_str(), std::move(arguments));
      },
      py::arg("purpose"), py::arg("name"), py::arg("addresses"),
      "Call a subroutine of MPI; the error code is added to its arguments.");
  define_ranks(module);
  module.def(
      "combine_over_ranks",
      [](const std::string& purpose, std::uintptr_t address, std::int64_t count, int dtype, bool is_largest,
         std::int64_t call, std::int64_t network) {
        const py::gil_scoped_release others;
        fpt::combine_over_ranks(pointer(address), count, dtype, reduction(is_largest), purpose, {call, network});
      },
      py::arg("purpose"), py::arg("address"), py::arg("count"), py::arg("dtype"), py::arg("is_largest"),
      py::arg("call"), py::arg("network"), "The same in a process that works for a rank, which makes the sums.");
}

/// Into sys.modules by hand: the table of built-in modules is closed where the library is loaded into a Python that
/// runs.
PyObject* make_module() {
  static py::module_::module_def definition;
  py::module_ module = py::module_::create_extension_module("_ftn_pytorch", nullptr, &definition);
  py::register_local_exception_translator(&translate);
  module.doc() = "What the core of ftn_pytorch offers to its Python package.";
  module.def("version", [] { return FPT_VERSION; }, "Version of the library, 'major.minor.patch'.");
  module.def(
      "warn", [](const std::string& text) { fpt::warn(text); }, py::arg("text"),
      "Send a warning to the handler that the program has registered.");
  module.def(
      "log_level", [] { return static_cast<int>(fpt::log_level()); }, "0: nothing is logged, 1: info, 2: debug.");
  module.def(
      "log", [](int level, const std::string& text) { fpt::log(static_cast<fpt::LogLevel>(level), text); },
      py::arg("level"), py::arg("text"), "Write a line into the log of FTN_PYTORCH_LOG.");
  module.def("writes_here", &fpt::writes_here, "Whether FTN_PYTORCH_LOG_RANKS lets this rank write.");
  module.def("size_limit", &fpt::size_limit, py::arg("usual"), "Bytes that FTN_PYTORCH_LOG_LIMIT allows.");
  module.def("inherit", &fpt::inherit, py::arg("descriptor"), py::arg("stays_open"),
             "Whether a descriptor stays open in a forked child, whoever forks.");
  module.def(
      "lock_is_kept", [] { return fpt::lock_is_kept(); },
      "Whether a thread of the program keeps Python's lock between its calls.");
  module.def("other_threads", &fpt::other_threads,
             "Threads of the program that have called Python and live, without this one.");
  module.def(
      "runner_in_call",
      [] { return fpt::runner_in_call ? py::reinterpret_borrow<py::object>(fpt::runner_in_call) : py::none(); },
      "The runner of the script whose function this thread of the program calls, None outside of calls.");
  module.def("torch_access", [] { return fpt::torch_report(); }, "How the library looks into tensors, one line.");
  module.def("outputs_of_procedure", &fpt::outputs_of_procedure, py::arg("name"),
             "Number of tensors that a procedure of the program makes.");
  module.def(
      "call_procedure",
      [](const std::string& name, bool adjoint, const py::tuple& tensors, int count) {
        return py::reinterpret_steal<py::tuple>(fpt::call_procedure(name, adjoint, tensors.ptr(), count).release());
      },
      py::arg("name"), py::arg("adjoint"), py::arg("tensors"), py::arg("count"),
      "Call a procedure of the program; a tuple of the tensors that it made.");
  module.def(
      "call_closure",
      [](std::uintptr_t closure, std::uintptr_t context) {
        const auto function = reinterpret_cast<fpt_procedure>(closure);  // NOLINT(performance-no-int-to-ptr)
        return py::reinterpret_steal<py::tuple>(fpt::call_closure(function, pointer(context)).release());
      },
      py::arg("closure"), py::arg("context"), "Call a closure of the program by its address; its tensor, in a tuple.");
  define_mpi(module);
  module.def("own_names_first", &fpt::own_names_first, "RTLD_DEEPBIND where modules can be opened so, else 0.");
  module.def(
      "shares_names", [] { return !fpt::functions_of_torch().empty() || !fpt::functions_of_modules().empty(); },
      "Whether the program has functions under names that torch or modules have.");
  module.def(
      "program_libraries",
      [] {
        py::dict found;
        found["obstacle"] = fpt::obstacle_to_own_names();
        found["malloc"] = fpt::file_of_malloc();
        py::dict of_torch, of_modules;
        for (const auto& each : fpt::functions_of_torch()) of_torch[each.name] = each.file;
        for (const auto& each : fpt::functions_of_modules()) of_modules[each.name] = each.file;
        found["torch"] = of_torch;
        found["modules"] = of_modules;
        return found;
      },
      "Why modules do not take their own names first, and the functions that the program has under names of theirs.");
  module.def("unusable_blas", &fpt::unusable_blas, "What torch could not use in the BLAS of the program.");
  module.def(
      "require_usable_blas",
      [](const std::string& why) {
        if (fpt::loaded_torch().folder.empty()) fpt::require_usable_blas(why);
      },
      py::arg("why"), "Before torch is imported: LIBRARY where it could not compute by the BLAS of the program.");
  module.def("judge_numbers", &fpt::judge_numbers, py::arg("wrong"), py::arg("why"),
             "LIBRARY for a function of torch whose numbers are wrong, a warning where all are right.");
  py::module_::import("sys").attr("modules")["_ftn_pytorch"] = module;
  return module.release().ptr();
}

[[maybe_unused]] const bool provided = fpt::provide_core_module(make_module);

}  // namespace
