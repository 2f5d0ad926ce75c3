// SPDX-License-Identifier: MIT
#include "recording/device_graphs_in_python.hpp"

#include <exception>
#include <utility>

#include "recording/saved_file.hpp"
#include "shared/device_graph.hpp"
#include "shared/device_turns.hpp"

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

/// A graph that Python holds. It is let go without the lock of the interpreter, which a capture may wait for.
class GraphInPython {
 public:
  explicit GraphInPython(std::unique_ptr<DeviceGraph> graph) : graph_(std::move(graph)) {}
  ~GraphInPython() {
    const py::gil_scoped_release released;
    graph_.reset();
  }
  GraphInPython(const GraphInPython&) = delete;
  GraphInPython& operator=(const GraphInPython&) = delete;

  void replay() { graph_->replay(); }
  bool can_be_replayed() const { return graph_->can_be_replayed(); }

 private:
  std::unique_ptr<DeviceGraph> graph_;
};

/// The graph, and what `launch` has returned.
py::tuple capture(const std::string& plugin, c10::DeviceIndex gpu, bool draws, const py::function& launch) {
  const SavedModules& modules = modules_of(plugin);
  if (!modules.capture) throw std::runtime_error("the direct path was built without the headers of CUDA");
  std::unique_ptr<DeviceGraph> graph;
  py::object made;
  std::exception_ptr failure;  // which the plug-in does not understand
  int32_t status = 0;
  {
    const py::gil_scoped_release released;
    status = modules.guarded([&] {
      graph = modules.capture(gpu, draws, [&] {
        const py::gil_scoped_acquire acquired;
        try {
          made = launch();
        } catch (...) {
          failure = std::current_exception();
          throw std::runtime_error("Python has failed");
        }
      });
    });
  }
  if (failure) std::rethrow_exception(failure);
  if (status != 0) throw std::runtime_error(modules.text());
  return py::make_tuple(std::make_unique<GraphInPython>(std::move(graph)), made);
}

}  // namespace

void add_device_graphs(py::module_& module) {
  py::class_<DeviceTurns, std::unique_ptr<DeviceTurns, py::nodelete>>(
      module, "DeviceTurns", "Graphs of a GPU run one after the other, on whatever streams.")
      .def("take", &take, py::arg("wait") = 0.0, "Before a launch or a capture; False if another thread has the turn.")
      .def("give_back", &DeviceTurns::give_back)
      .def("begin", &DeviceTurns::begin, "What the current stream is given from now on comes after the last graph.")
      .def("end", &DeviceTurns::end, "The graph was launched, and all that reads its memory.");
  py::class_<GraphInPython>(module, "DeviceGraph", "A CUDA graph.")
      .def("replay", &GraphInPython::replay)
      .def_property_readonly("can_be_replayed", &GraphInPython::can_be_replayed,
                             "False once a later capture has failed: it would draw other random numbers than torch.");
  module.def(
      "device_turns",
      [](const std::string& plugin, c10::DeviceIndex gpu) -> DeviceTurns& {
        return plugin.empty() ? DeviceTurns::of(gpu) : modules_of(plugin).turns(gpu);
      },
      py::arg("plugin"), py::arg("gpu"), py::return_value_policy::reference,
      "Those of the plug-in, or of this module where there is none.");
  module.attr("others_may_draw") = others_may_draw;
  module.def("capture", &capture, py::arg("plugin"), py::arg("gpu"), py::arg("draws"), py::arg("launch"),
             "A graph of what launch() gives the current device, of which nothing is computed, and what it returns. "
             "RuntimeError if a call cannot be captured; memory and random numbers stay as they were.");
}

}  // namespace fpt::recording
