// SPDX-License-Identifier: MIT
#include "recording/device_turns_in_python.hpp"

#include "recording/saved_file.hpp"
#include "tape/device_turns.hpp"

namespace fpt::recording {
namespace {

namespace py = pybind11;

/// Without the lock of the interpreter where it has to wait: whoever has the turn may want that.
bool take(DeviceTurns& turns, double wait) {
  if (turns.take()) return true;
  if (wait <= 0) return false;
  const py::gil_scoped_release released;
  return turns.take(std::chrono::duration<double>(wait));
}

}  // namespace

void add_device_turns(py::module_& module) {
  py::class_<DeviceTurns, std::unique_ptr<DeviceTurns, py::nodelete>>(
      module, "DeviceTurns", "Graphs of a GPU run one after the other, on whatever streams.")
      .def("take", &take, py::arg("wait") = 0.0, "Before a launch or a capture; False if another thread has the turn.")
      .def("give_back", &DeviceTurns::give_back)
      .def("begin", &DeviceTurns::begin, "What the current stream is given from now on comes after the last graph.")
      .def("end", &DeviceTurns::end, "The graph was launched, and all that reads its memory.")
      .def("failed", &DeviceTurns::failed, "A capture has failed: graphs of before draw other random numbers.")
      .def_property_readonly("failures", &DeviceTurns::failures);
  module.def(
      "device_turns",
      [](const std::string& plugin, c10::DeviceIndex gpu) -> DeviceTurns& {
        return plugin.empty() ? DeviceTurns::of(gpu) : modules_of(plugin).turns(gpu);
      },
      py::arg("plugin"), py::arg("gpu"), py::return_value_policy::reference,
      "Those of the plug-in, or of this module where there is none.");
  module.def(
      "end_pool",
      [](const std::string& plugin, c10::DeviceIndex gpu, std::pair<unsigned long long, unsigned long long> pool) {
        const auto end = plugin.empty() ? nullptr : modules_of(plugin).end_pool;
        if (end) end(gpu, pool);
      },
      py::arg("plugin"), py::arg("gpu"), py::arg("pool"),
      "Have torch's allocator end a capture into a pool that has failed, so that it gives cached memory back.");
}

}  // namespace fpt::recording
