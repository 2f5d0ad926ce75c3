// SPDX-License-Identifier: MIT
#include "recording/description.hpp"

namespace fpt::recording {
namespace {

/// Pairs of a code and what it needs: an index, a constant, or nothing.
Formula formula_of(const py::handle& described) {
  Formula made;
  for (const auto& step : described) {
    const auto pair = py::reinterpret_borrow<py::tuple>(step);
    const auto code = static_cast<Formula::Code>(py::cast<int>(pair[0]));
    if (code == Formula::Code::constant)
      made.steps.push_back({code, -1, py::cast<double>(pair[1])});
    else
      made.steps.push_back({code, py::cast<int32_t>(pair[1]), 0});
  }
  return made;
}

/// ("slot" | "last", index), ("list", indices), ("value" | "waits", object), ("number", formula) or ("numbers", list).
Argument argument_of(const py::tuple& described, const c10::Argument& declared) {
  const auto kind = py::cast<std::string>(described[0]);
  Argument made;
  const bool is_tensor = declared.type()->kind() == c10::TypeKind::TensorType;
  if (kind == "value" || kind == "waits") {
    if (kind == "waits") made.kind = Argument::Kind::waits;
    const py::object value = described[1];
    // operators of tensors take numbers, too, which count less when types are decided
    if (is_tensor && !value.is_none())
      made.value = at::native::wrapped_scalar_tensor(torch::jit::toIValue(value, c10::NumberType::get()).toScalar());
    else
      made.value = torch::jit::toIValue(value, declared.type());
  } else if (kind == "list") {
    made.kind = Argument::Kind::list;
    made.items = integers(described[1]);
    c10::TypePtr type = declared.type();
    if (const auto optional = type->cast<c10::OptionalType>()) type = optional->getElementType();
    const auto list = type->cast<c10::ListType>();
    made.may_be_none = list && list->getElementType()->kind() == c10::TypeKind::OptionalType;
  } else if (kind == "number") {
    made.kind = Argument::Kind::number;
    made.formulas.push_back(formula_of(described[1]));
    made.is_wrapped = is_tensor;
  } else if (kind == "numbers") {
    made.kind = Argument::Kind::numbers;
    for (const auto& each : described[1]) made.formulas.push_back(formula_of(each));
  } else {
    made.kind = kind == "slot" ? Argument::Kind::slot : Argument::Kind::last;
    made.index = py::cast<int32_t>(described[1]);
  }
  return made;
}

}  // namespace

Operation operation_of(const py::tuple& described) {
  const auto name = py::cast<std::string>(described[0]), overload = py::cast<std::string>(described[1]);
  Operation made{c10::Dispatcher::singleton().findSchemaOrThrow(name.c_str(), overload.c_str()), {}, {}, {}};
  const auto& declared = made.handle->schema().arguments();
  std::size_t place = 0;
  for (const auto& argument : described[2])
    made.arguments.push_back(argument_of(py::reinterpret_borrow<py::tuple>(argument), declared.at(place++)));
  for (const auto& slots : described[3]) made.results.push_back(integers(slots));
  return made;
}

Binding binding_of(const py::tuple& described) {
  return {static_cast<Binding::Kind>(py::cast<int>(described[0])), described[1], described[2], described[3]};
}

Source source_of(const py::tuple& described) {
  if (described.size() == 2) return {{}, {}, -1, tensor_of(described[0]).detach(), py::cast<int>(described[1])};
  return {described[0], described[1], py::cast<Py_ssize_t>(described[2]), {}, 0};
}

Branch branch_of(const py::tuple& described) {
  return {static_cast<Branch::Code>(py::cast<int>(described[0])), formula_of(described[1]), formula_of(described[2]),
          py::cast<bool>(described[3])};
}

}  // namespace fpt::recording
