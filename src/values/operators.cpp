// SPDX-License-Identifier: MIT
#include "values/operators.hpp"

#include <iterator>

#include "base/error.hpp"
#include "python/interpreter.hpp"
#include "values/object_tensor.hpp"
#include "values/python_value.hpp"

namespace fpt {
namespace {

PyObject* power(PyObject* left, PyObject* right) { return PyNumber_Power(left, right, Py_None); }

template <int comparison>
PyObject* compare(PyObject* left, PyObject* right) {
  return PyObject_RichCompare(left, right, comparison);
}

/// In the order of the constants in ftn_pytorch.h.
constexpr struct {
  PyObject* (*function)(PyObject*, PyObject*);
  const char* text;
} operations[] = {
    {PyNumber_Add, "+"},    {PyNumber_Subtract, "-"}, {PyNumber_Multiply, "*"}, {PyNumber_TrueDivide, "/"},
    {power, "**"},          {compare<Py_EQ>, "=="},   {compare<Py_NE>, "/="},   {compare<Py_LT>, "<"},
    {compare<Py_LE>, "<="}, {compare<Py_GT>, ">"},    {compare<Py_GE>, ">="},   {PyNumber_MatrixMultiply, "matmul"},
};
static_assert(std::size(operations) == FPT_MATMUL + 1, "one row for each operator");

Ref operand(const TensorPtr& tensor, const fpt_arg* scalar) {
  return tensor ? torch_object_of(*tensor) : python_value(*scalar);
}

/// With the axes in the other order, as another view of the same memory.
Ref reversed_view(PyObject* object) {
  return checked(PyObject_CallFunctionObjArgs(embed("adapt"), object, Py_None, Py_True, Py_False, nullptr),
                 "reversing axes");
}

[[noreturn]] void throw_failure(const char* operation, const Ref& left, const Ref& right, bool same_layout) {
  try {
    throw_python_error(operation);
  } catch (const Error& error) {
    const Ref lines(PyObject_CallFunction(embed("describe_operands"), "OOi", left.get(), right.get(), same_layout));
    const char* text = lines ? PyUnicode_AsUTF8(lines.get()) : nullptr;
    if (!text) PyErr_Clear();
    throw Error(error.status(), text ? concat(error.text(), '\n', text) : error.text());
  }
}

}  // namespace

TensorPtr operate(int32_t operation, const TensorPtr& left, const TensorPtr& right, const fpt_arg* scalar) {
  if (operation < 0 || operation > FPT_MATMUL) fail(FPT_ERR_ARGUMENT, "there is no operator ", operation);
  const auto [function, text] = operations[operation];
  Ref first = operand(left, scalar), second = operand(right, scalar);
  bool same_layout = (left ? left : right)->same_layout();
  if (left && right && same_layout != right->same_layout()) {
    if (left->array().rank < right->array().rank) {
      first = reversed_view(first.get());
      same_layout = !same_layout;
    } else {
      second = reversed_view(second.get());
    }
  }
  // the product of the matrices that Fortran sees: (A B) transposed is B transposed, A transposed
  const bool swaps = operation == FPT_MATMUL && !same_layout;
  Ref result(function((swaps ? second : first).get(), (swaps ? first : second).get()));
  if (!result) throw_failure(text, first, second, same_layout);
  return tensor_of_object(std::move(result), same_layout);
}

void write_tensor(Tensor& target, Tensor& value) {
  const Ref given = torch_object_of(value), written = torch_object_of(target),
            turned = value.same_layout() == target.same_layout() ? given : reversed_view(given.get());
  checked(PyObject_CallFunctionObjArgs(embed("write_through"), written.get(), turned.get(),
                                       target.same_layout() ? Py_True : Py_False, nullptr),
          "assigning to a tensor made of an array");
}

}  // namespace fpt
