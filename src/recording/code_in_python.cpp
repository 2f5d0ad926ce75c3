// SPDX-License-Identifier: MIT
#include "recording/code_in_python.hpp"

#include "recording/description.hpp"
#include "shared/code.hpp"

namespace fpt::recording {
namespace {

std::vector<at::Tensor> tensors_of(const py::list& list) {
  std::vector<at::Tensor> tensors;
  for (const auto& tensor : list) tensors.push_back(tensor_of(tensor));
  return tensors;
}

std::shared_ptr<Code> code_of(const std::string& file, std::vector<int32_t> inputs, const py::list& memory,
                              std::vector<int32_t> results, bool writes_memory, bool writes_inputs) {
  ftr::CodeParts parts{std::move(inputs), tensors_of(memory), std::move(results), writes_memory, writes_inputs};
  std::exception_ptr failure;
  try {
    const py::gil_scoped_release others;
    return std::make_shared<Code>(open_package(file, "model", -1), std::move(parts));
  } catch (...) {
    failure = std::current_exception();
  }
  rethrow_in_python(failure);
}

}  // namespace

void rethrow_in_python(const std::exception_ptr& failure) {
  torch::translate_exception_to_python(failure);
  throw py::error_already_set();
}

void add_code(py::module_& module) {
  py::class_<Code, std::shared_ptr<Code>>(module, "Code")
      .def(py::init(&code_of), py::arg("file"), py::arg("inputs"), py::arg("memory"), py::arg("results"),
           py::arg("writes_memory"), py::arg("writes_inputs"),
           "Code of a package, by the slots and tensors that it is given and the slots that it fills.")
      .def(
          "takes", [](const Code& code, const py::list& inputs) { return code.takes(tensors_of(inputs)); },
          py::arg("inputs"), "False where a call would write memory that it reads through another tensor.");
}

}  // namespace fpt::recording
