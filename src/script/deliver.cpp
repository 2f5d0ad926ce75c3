// SPDX-License-Identifier: MIT
#include "script/deliver.hpp"

#include <cstring>
#include <memory>

#include "script/call.hpp"
#include "script/convert.hpp"
#include "base/error.hpp"
#include "base/fpenv.hpp"
#include "base/handle.hpp"
#include "python/interpreter.hpp"

namespace fpt {
namespace {

using ResultsTable = HandleTable<Results, HandleKind::results>;

ResultsTable& table() {
  static ResultsTable& instance = *new ResultsTable("an object with results", "a function with it as results argument");
  return instance;
}

/// Names (or none) and values of a result, as the Python side sorts them out.
struct Unpacked {
  Ref holder;
  PyObject* names = nullptr;  // tuple or null
  PyObject* values = nullptr;
  Py_ssize_t count() const noexcept { return PyTuple_GET_SIZE(values); }
};

Unpacked unpack(PyObject* result, const std::string& context) {
  Unpacked unpacked;
  unpacked.holder = checked(PyObject_CallFunctionObjArgs(embed("unpack"), result, nullptr), context);
  PyObject* names = nullptr;
  if (!PyArg_ParseTuple(unpacked.holder.get(), "OO!", &names, &PyTuple_Type, &unpacked.values)) throw_python_error(context);
  if (names != Py_None) unpacked.names = names;
  return unpacked;
}

/// Names as UTF-8; null for one that is none.
std::vector<const char*> utf8_names(PyObject* names) {
  std::vector<const char*> texts;
  for (Py_ssize_t i = 0; names && i < PyTuple_GET_SIZE(names); ++i) {
    texts.push_back(PyUnicode_AsUTF8(PyTuple_GET_ITEM(names, i)));
    if (!texts.back()) PyErr_Clear();
  }
  return texts;
}

bool is_number(PyObject* value) { return PyLong_Check(value) || PyFloat_Check(value) || PyComplex_Check(value); }

/// Pairs results with outputs, checks all of them, then copies.
class Delivery {
 public:
  Delivery(const Module& module, const Function& function, fpt_arg* outputs, int32_t count)
      : module_(module), function_(function), outputs_(outputs), count_(count) {
    copies_.reserve(static_cast<std::size_t>(count));
  }

  /// The usual case, one or several tensors for outputs without names; false if it is another case.
  bool of_plain_tensors(PyObject* result) {
    const bool several = PyTuple_CheckExact(result);
    if ((several ? PyTuple_GET_SIZE(result) : 1) != count_) return false;
    for (int32_t i = 0; i < count_; ++i) {
      PyObject* value = several ? PyTuple_GET_ITEM(result, i) : result;
      View view;
      if ((several && outputs_[i].name[0]) || !view_plain_tensor(value, view)) {
        copies_.clear();
        return false;
      }
      add(value, &view, i);
    }
    return true;
  }

  void of_unpacked(const Unpacked& unpacked, bool is_tuple) {
    const ResultList results{static_cast<int32_t>(unpacked.count()), utf8_names(unpacked.names), is_tuple};
    const std::vector<int32_t> places = pair_outputs({function_.name, module_.name()}, results, outputs_, count_);
    for (int32_t i = 0; i < count_; ++i)
      add(PyTuple_GET_ITEM(unpacked.values, places[static_cast<std::size_t>(i)]), nullptr, i);
  }

  void run() {
    for (std::size_t i = 0; i < copies_.size(); ++i)
      for (std::size_t j = 0; j < copies_.size(); ++j)
        if (copies_[j].spoils(copies_[i])) {
          copies_[i].clone_source();
          break;
        }
    for (PreparedCopy& copy : copies_) copy.run();
  }

 private:
  std::string context() const { return concat(function_.name, " of ", module_.name()); }

  void add(PyObject* value, const View* plain, int32_t index) {
    try {
      copies_.push_back(
          prepare_copy(value, plain, outputs_[index], module_.same_layout(), module_.casts_outputs(), "the result"));
    } catch (const Error& error) {
      fail(error.status(), context(), ", ", argument_label("output", index, outputs_[index]), ": ", error.text());
    }
  }

  const Module& module_;
  const Function& function_;
  fpt_arg* outputs_;
  int32_t count_;
  std::vector<PreparedCopy> copies_;
};

/// The view of an array without axes; false for everything else, also for arrays that cannot be looked into.
/// @param plain  set where the memory holds the value as it is
bool view_scalar(PyObject* value, View& view, bool& plain) {
  if (is_number(value) || !is_array(value)) return false;
  try {
    plain = view_plain_tensor(value, view);
    if (!plain) view = view_of(value);
  } catch (const Error&) {
    return false;
  }
  return view.array.rank == 0;
}

/// The most frequent result: one tensor. False if it is another case, or not sure to be this one.
bool deliver_directly(PyObject* result, const fpt_arg& output, bool same_layout) {
  View view;
  return view_plain_tensor(result, view) && copy_plainly(same_layout ? view.array : reversed(view.array), output);
}

/// Out of line: it is long, and the most frequent result has no use for it.
[[gnu::noinline]]
void deliver_checked(const Module& module, const Function& function, PyObject* result, fpt_arg* outputs, int32_t count) {
  Delivery delivery(module, function, outputs, count);
  if (!delivery.of_plain_tensors(result)) {
    const Unpacked unpacked = unpack(result, concat("the result of ", function.name, " of ", module.name()));
    delivery.of_unpacked(unpacked, PyTuple_Check(result));
  }
  delivery.run();
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

[[gnu::hot]]
void deliver(const Module& module, const Function& function, PyObject* result, fpt_arg* outputs, int32_t count,
             bool in_place) {
  if (in_place && result == Py_None) return;
  if (count == 1 && deliver_directly(result, *outputs, module.same_layout())) return;
  deliver_checked(module, function, result, outputs, count);
}

void require_done(const Module& module, const Function& function, PyObject* result) {
  if (PyCoro_CheckExact(result) || PyGen_CheckExact(result) || PyAsyncGen_CheckExact(result))
    unpack(result, concat("the result of ", function.name, " of ", module.name()));
}

[[gnu::hot]]
void deliver_training(const Module& module, const Function& function, PyObject* result, int32_t& completed, double& loss) {
  const auto what = [&] { return concat(function.name, " of ", module.name()); };
  if (!PyTuple_Check(result) && !PyList_Check(result))
    fail(FPT_ERR_TRAIN_RESULT, what(), " must return (is_completed, loss) but returned ",
         result == Py_None ? "None" : Py_TYPE(result)->tp_name);
  const Py_ssize_t values = PySequence_Size(result);
  if (values < 0) throw_python_error(what());  // of a class that the script derived from list
  if (values != 2)
    fail(FPT_ERR_TRAIN_RESULT, what(), " must return (is_completed, loss) but returned ", values, " values");
  const Ref first(PySequence_GetItem(result, 0)), second(PySequence_GetItem(result, 1));
  if (!first || !second) throw_python_error(what());
  const int done = truth(first.get());
  double number = 0;
  if (done < 0) {
    const bool swapped = truth(second.get()) >= 0;
    fail(FPT_ERR_TRAIN_RESULT, what(), " must return (is_completed, loss), but the first value is of type ",
         Py_TYPE(first.get())->tp_name, " and no bool", swapped ? ": the two are in the wrong order" : "");
  }
  if (!read_loss(second.get(), number))
    fail(FPT_ERR_TRAIN_RESULT, what(), " must return (is_completed, loss), but the loss is of type ",
         Py_TYPE(second.get())->tp_name, " and no single real number: reduce it in the script, for example with .mean()");
  completed = done;
  loss = number;
}

Tensor single_tensor(const Module& module, const Function& function, PyObject* result) {
  const std::string what = concat(function.name, " of ", module.name());
  const Unpacked unpacked = unpack(result, "the result of " + what);
  if (unpacked.count() != 1)
    fail(FPT_ERR_RESULT_COUNT, what, " returned ", unpacked.count(),
         " results, but one tensor is expected: use a results argument, or several outputs");
  PyObject* value = PyTuple_GET_ITEM(unpacked.values, 0);
  if (!is_array(value))
    fail(FPT_ERR_RESULT_TYPE, what, " returned a ", Py_TYPE(value)->tp_name, ", but a tensor is expected");
  return Tensor::of_object(value, module.same_layout(), module.computes_on_device());
}

Results Results::of(const Module& module, const Function& function, PyObject* result) {
  Results results;
  const std::string call = concat(function.name, " of ", module.name());
  results.same_layout_ = module.same_layout();
  const Unpacked unpacked = unpack(result, "the result of " + call);
  std::vector<std::string> names(static_cast<std::size_t>(unpacked.count()));
  for (Py_ssize_t i = 0; i < unpacked.count(); ++i) {
    Value value;
    value.object = Ref::borrow(PyTuple_GET_ITEM(unpacked.values, i));
    if (unpacked.names) {
      const char* name = PyUnicode_AsUTF8(PyTuple_GET_ITEM(unpacked.names, i));
      if (!name) throw_python_error(call);
      names[static_cast<std::size_t>(i)] = name;
    }
    if (module.computes_on_device() && is_tensor(value.object.get()))
      value.object = checked(PyObject_CallFunctionObjArgs(embed("to_host"), value.object.get(), nullptr), call);
    results.values_.push_back(std::move(value));
  }
  results.names_ = ResultNames(call, std::move(names));
  return results;
}

Results::Value& Results::value(int32_t index) { return values_[names_.place(index)]; }

const Tensor& Results::viewed(int32_t index) {
  Value& result = value(index);
  if (!result.viewed) {
    if (!is_array(result.object.get()))
      fail(FPT_ERR_RESULT_TYPE, names_.label(index), " is a ", Py_TYPE(result.object.get())->tp_name, " and no array: use scalar");
    result.tensor = Tensor::of_object(result.object.get(), same_layout_, false);
    result.viewed = true;
  }
  return result.tensor;
}

Tensor Results::tensor(int32_t index) { return viewed(index).duplicate(); }

void Results::memory(int32_t index, int32_t dtype, int32_t rank, void** data, int64_t* extents, int64_t* strides) {
  const Array& array = viewed(index).array;
  require_memory(array, dtype, rank, names_.label(index));
  *data = array.data;
  std::memcpy(extents, array.extents, sizeof(int64_t) * static_cast<std::size_t>(rank));
  std::memcpy(strides, array.strides, sizeof(int64_t) * static_cast<std::size_t>(rank));
}

void Results::copy_into(int32_t index, const fpt_arg& output, bool cast) {
  PyObject* object = value(index).object.get();
  prepare_copy(object, nullptr, described_output(output), same_layout_, cast, names_.label(index).c_str()).run();
}

const std::string& Results::text(int32_t index) {
  Value& result = value(index);
  if (!PyUnicode_Check(result.object.get()))
    fail(FPT_ERR_DTYPE, names_.label(index), " is a ", Py_TYPE(result.object.get())->tp_name, " and no text");
  Py_ssize_t length = 0;
  const char* text = PyUnicode_AsUTF8AndSize(result.object.get(), &length);
  if (!text) throw_python_error(names_.label(index));
  result.text.assign(text, static_cast<std::size_t>(length));
  return result.text;
}

Results& results_at(int64_t handle) { return table().at(handle); }

void store_results(int64_t* handle, Results results) {
  if (Results* known = table().find(*handle))
    std::swap(*known, results);
  else
    *handle = table().insert(std::make_unique<Results>(std::move(results)));
}

void free_results(int64_t handle) noexcept {
  std::unique_ptr<Results> results = table().remove(handle);
  if (!results) return;
  const HostState host;  // destroying an object may run code of the script
  const InterpreterLock gil;
  results.reset();
}

}  // namespace fpt
