// SPDX-License-Identifier: MIT
/// Parts of a recording, made of what `recording/tape.py` says of them in tuples and lists.
#pragma once

#include <string>
#include <vector>

#include "recording/validity.hpp"

namespace fpt::recording {

inline py::object not_implemented() { return py::reinterpret_borrow<py::object>(Py_NotImplemented); }

inline std::vector<int32_t> integers(const py::handle& list) { return py::cast<std::vector<int32_t>>(list); }

inline at::Tensor tensor_of(const py::handle& object) { return THPVariable_Unpack(object.ptr()); }

inline std::vector<at::Tensor> tensors_in(const py::list& objects) {
  std::vector<at::Tensor> found;
  for (const py::handle each : objects) found.push_back(tensor_of(each));
  return found;
}

/// (name, overload, arguments in the order of the schema, slots of results)
Operation operation_of(const py::tuple& described);

/// (kind, holder, key, value)
Binding binding_of(const py::tuple& described);

/// (group, key, item), or (counter, what is added to it).
Source source_of(const py::tuple& described);

/// (code, formula, formula, outcome)
Branch branch_of(const py::tuple& described);

template <class Made, class Make>
std::vector<Made> all_of(const py::iterable& described, const Make& make) {
  std::vector<Made> made;
  for (const auto& each : described) made.push_back(make(py::reinterpret_borrow<py::tuple>(each)));
  return made;
}

}  // namespace fpt::recording
