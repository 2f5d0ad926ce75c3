// SPDX-License-Identifier: MIT
#include "script/script_answer.hpp"

#include <memory>
#include <utility>

#include "arrays/copy.hpp"
#include "arrays/fit.hpp"
#include "base/error.hpp"
#include "python/interpreter.hpp"
#include "values/object_tensor.hpp"

namespace fpt {
namespace {

/// A Python number in the widest type of its group; false for everything else.
bool read_scalar(PyObject* object, Scalar& scalar) {
  if (PyBool_Check(object)) {
    scalar = object == Py_True;
  } else if (PyLong_Check(object)) {
    int overflow = 0;
    scalar = static_cast<int64_t>(PyLong_AsLongLongAndOverflow(object, &overflow));
    if (overflow) {
      const double real = PyLong_AsDouble(object);
      if (PyErr_Occurred()) {
        PyErr_Clear();
        fail(FPT_ERR_DTYPE, "the result is an integer too large for any variable");
      }
      scalar = real;
    }
  } else if (PyFloat_Check(object)) {
    scalar = PyFloat_AS_DOUBLE(object);
  } else if (PyComplex_Check(object)) {
    scalar = std::complex<double>(PyComplex_RealAsDouble(object), PyComplex_ImagAsDouble(object));
  } else if (PyUnicode_Check(object)) {
    Py_ssize_t length = 0;
    const char* text = PyUnicode_AsUTF8AndSize(object, &length);
    if (!text) throw_python_error("reading a string");
    scalar = std::string_view(text, static_cast<std::size_t>(length));
  } else {
    return false;
  }
  return true;
}

}  // namespace

ScriptAnswer::ScriptAnswer(PyObject* result, const CallName& call, bool copied_at_once)
    : is_tuple_(PyTuple_Check(result)), copied_at_once_(copied_at_once) {
  if (copied_at_once && take_plain_tensors(result)) return;
  const std::string context = concat("the result of ", call);
  const Ref unpacked = checked(PyObject_CallFunctionObjArgs(embed("unpack"), result, nullptr), context);
  PyObject *names = nullptr, *values = nullptr;
  if (!PyArg_ParseTuple(unpacked.get(), "OO!", &names, &PyTuple_Type, &values)) throw_python_error(context);
  if (names != Py_None) names_ = Ref::borrow(names);
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(values); ++i)
    items_.push_back({Ref::borrow(PyTuple_GET_ITEM(values, i)), {}, {}});
}

/// One tensor or a tuple of tensors: the Python side would not change them.
bool ScriptAnswer::take_plain_tensors(PyObject* result) {
  const bool several = PyTuple_CheckExact(result);
  const Py_ssize_t count = several ? PyTuple_GET_SIZE(result) : 1;
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* object = several ? PyTuple_GET_ITEM(result, i) : result;
    View view;
    if (!view_plain_tensor(object, view)) return items_.clear(), false;
    items_.push_back({Ref::borrow(object), {}, {}});
  }
  return true;
}

ResultList ScriptAnswer::list() const {
  const InterpreterLock gil;
  ResultList list{static_cast<int32_t>(items_.size()), {}, is_tuple_};
  for (Py_ssize_t i = 0; names_ && i < PyTuple_GET_SIZE(names_.get()); ++i) {
    list.names.push_back(PyUnicode_AsUTF8(PyTuple_GET_ITEM(names_.get(), i)));
    if (!list.names.back()) PyErr_Clear();
  }
  return list;
}

Value ScriptAnswer::value(int32_t index) {
  const InterpreterLock gil;
  Ref& given = items_[static_cast<std::size_t>(index)].given;
  const char* type = Py_TYPE(given.get())->tp_name;
  Scalar scalar;
  if (read_scalar(given.get(), scalar)) return {scalar, type};
  return {look_into(given), type};
}

Array ScriptAnswer::copy_of(int32_t index, Copy Item::* copy, bool widened) {
  const InterpreterLock gil;
  Item& item = items_[static_cast<std::size_t>(index)];
  Copy& known = item.*copy;
  if (copied_at_once_ && known.object) return look_into(known.object);
  const Array given = look_into(item.given);
  uint64_t state = 0;
  if (!copied_at_once_)  // a digest shows every change; of memory on a device only those that torch counts are known
    state = given.device.is_host() ? digest(given) : static_cast<uint64_t>(torch_access::version(item.given.get()));
  if (!known.object || known.state != state || !is_same_memory(known.of, given)) {
    known.object =
        checked(PyObject_CallFunctionObjArgs(embed("to_host"), item.given.get(), widened ? Py_True : Py_False, nullptr),
                "copying a result to the host");
    known.of = given;
    known.state = state;
  }
  return look_into(known.object);
}

TensorPtr ScriptAnswer::tensor(int32_t index, bool same_layout, bool on_host) {
  const InterpreterLock gil;
  Item& item = items_[static_cast<std::size_t>(index)];
  if (on_host) copy_of(index, &Item::on_host, false);
  return tensor_of_object(on_host ? item.on_host.object : item.given, same_layout);
}

void ScriptAnswer::copy(const Array& source, const Array& target) {
  const InterpreterLock gil;
  const Ref from = make_array(Framework::torch, source, nullptr, false).object,
            to = make_array(Framework::torch, target, nullptr, false).object;
  checked(PyObject_CallMethod(to.get(), "copy_", "O", from.get()), "copying a result");
}

bool copy_plain_tensor(PyObject* result, const fpt_arg& output, bool same_layout) {
  View view;
  return view_plain_tensor(result, view) && view.array.device.is_host() &&
         copy_plainly(same_layout ? view.array : reversed(view.array), output);
}

}  // namespace fpt
