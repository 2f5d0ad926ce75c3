// SPDX-License-Identifier: MIT
#include "script/training.hpp"

#include <cstring>

#include "base/error.hpp"
#include "python/interpreter.hpp"
#include "torch/framework.hpp"

namespace fpt {
namespace {

bool is_number(PyObject* value) { return PyLong_Check(value) || PyFloat_Check(value) || PyComplex_Check(value); }

/// The view of an array without axes; false for everything else, also for arrays that cannot be looked into.
/// @param plain  set where the memory holds the value as it is
bool view_scalar(PyObject* value, View& view, bool& plain) {
  if (is_number(value) || !is_array(value)) return false;
  try {
    plain = view_plain_tensor(value, view) && view.array.device.is_host();
    if (!plain) view = view_of(value);
  } catch (const Error&) {
    return false;
  }
  return view.array.rank == 0;
}

/// Truth value of a bool, or of a 0-dim bool tensor or NumPy scalar; -1 for everything else.
int truth(PyObject* value) {
  if (PyBool_Check(value)) return value == Py_True;
  View view;
  bool plain;
  if (!view_scalar(value, view, plain) || view.array.dtype != FPT_BOOL) return -1;
  const int result = PyObject_IsTrue(value);
  if (result < 0) throw_python_error("reading is_completed");
  return result;
}

/// Number of a float, int, 0-dim tensor or NumPy scalar.
bool read_loss(PyObject* value, double& loss) {
  if (PyFloat_Check(value)) return loss = PyFloat_AS_DOUBLE(value), true;
  if (PyBool_Check(value)) return false;
  Ref item = Ref::borrow(value);
  if (!PyLong_Check(value)) {
    View view;
    bool plain;
    if (!view_scalar(value, view, plain) || view.array.dtype == FPT_BOOL || is_complex(view.array.dtype)) return false;
    if (plain && view.array.dtype == FPT_FLOAT32) {
      float single;
      std::memcpy(&single, view.array.data, sizeof single);
      return loss = single, true;
    }
    if (plain && view.array.dtype == FPT_FLOAT64) return std::memcpy(&loss, view.array.data, sizeof loss), true;
    item = Ref(PyObject_CallMethod(value, "item", nullptr));  // float(value) prints a warning where it has a gradient
    if (!item) return PyErr_Clear(), false;
  }
  const Ref number(PyNumber_Float(item.get()));
  if (!number) return PyErr_Clear(), false;
  loss = PyFloat_AS_DOUBLE(number.get());
  return true;
}

}  // namespace

Training training_of(PyObject* result, const CallName& call) {
  const auto refuse = [&call](const auto&... what) {
    fail(FPT_ERR_TRAIN_RESULT, call, " must return (is_completed, loss)", what...);
  };
  if (!PyTuple_Check(result) && !PyList_Check(result))
    refuse(" but returned ", result == Py_None ? "None" : Py_TYPE(result)->tp_name);
  const Py_ssize_t values = PySequence_Size(result);
  if (values < 0) throw_python_error(concat(call));  // of a class that the script derived from list
  if (values != 2) refuse(" but returned ", values, " values");
  const Ref first(PySequence_GetItem(result, 0)), second(PySequence_GetItem(result, 1));
  if (!first || !second) throw_python_error(concat(call));
  const int done = truth(first.get());
  double number = 0;
  if (done < 0) {
    const bool swapped = truth(second.get()) >= 0;
    refuse(", but the first value is of type ", Py_TYPE(first.get())->tp_name, " and no bool",
           swapped ? ": the two are in the wrong order" : "");
  }
  if (!read_loss(second.get(), number))
    refuse(", but the loss is of type ", Py_TYPE(second.get())->tp_name,
           " and no single real number: reduce it in the script, for example with .mean()");
  return {done, number};
}

}  // namespace fpt
