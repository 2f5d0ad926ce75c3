// SPDX-License-Identifier: MIT
#include "script/observed_function.hpp"

#include <memory>
#include <utility>
#include <vector>

#include "observe/observe.hpp"
#include "python/interpreter.hpp"
#include "torch/framework.hpp"

namespace fpt {
namespace {

struct Observed {
  Ref function, runner;
  std::string name;
  int32_t flags;
  std::vector<std::pair<Ref, Ref>> ranges;  // what others than the library want to know: NVTX, torch.profiler
};

constexpr const char* capsule_name = "ftn_pytorch.observed";

/// Observation must not change what a call does: its own failures go into the log.
void note_failure(const char* what) noexcept {
  const Ref failure = take_exception();
  const Ref text(failure ? PyObject_Str(failure.get()) : nullptr);
  const char* words = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
  PyErr_Clear();
  log(LogLevel::info,
      concat(what, " failed: ", failure ? Py_TYPE(failure.get())->tp_name : "", ": ", words ? words : ""));
}

int count_arrays(PyObject* value) {
  if (!PyList_CheckExact(value)) return is_array(value);
  int count = 0;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(value); ++i) count += is_array(PyList_GET_ITEM(value, i));
  return count;
}

/// Ask the Python side; null with a line in the log if it fails. Keeps an exception that is set.
template <class... Arguments>
Ref ask(const char* function, Arguments... arguments) {
  const KeptException kept;
  Ref answer;
  try {
    answer = Ref(PyObject_CallFunctionObjArgs(embed(function), arguments..., nullptr));
    if (!answer) note_failure(function);
  } catch (const Error& error) {
    log(LogLevel::info, concat(function, " failed: ", error.text()));
  }
  return answer;
}

void call_range(const Ref& function) {
  if (!Ref(PyObject_CallNoArgs(function.get()))) note_failure("a range of NVTX or torch.profiler");
}

Ref begin_record(const Observed& observed, const Passed& passed) {
  if (!records()) return {};
  const Ref name(PyUnicode_FromString(observed.name.c_str())), flags(PyLong_FromLong(observed.flags));
  Ref record =
      ask("record_begin", observed.runner.get(), name.get(), flags.get(), passed.positional.get(), passed.named.get());
  if (record && record.get() != Py_None) return record;
  record_ended();
  return {};
}

/// What the function got and gave, as text. The result is null where it raised.
std::string description_of(const Passed& passed, PyObject* result) {
  const Ref text =
      ask("describe_call", passed.positional.get(), passed.named.get(), result ? result : Py_NotImplemented);
  const char* words = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
  if (!words) PyErr_Clear();
  return words ? words : "";
}

PyObject* call_observed(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  const auto& observed = *static_cast<Observed*>(PyCapsule_GetPointer(self, capsule_name));
  Crossing* crossing = Crossing::current();
  const bool describes = crossing && crossing->wants_description();
  const int64_t called = time_now();
  Ref record;
  int arrays = 0, made = 0;
  if (describes) {
    const Py_ssize_t all = count + (names ? PyTuple_GET_SIZE(names) : 0);
    for (Py_ssize_t i = 0; i < all; ++i) arrays += count_arrays(args[i]);
    made = crossing->arrays_made;
  }
  if (records()) record = begin_record(observed, Passed(args, count, names));
  for (const auto& range : observed.ranges) call_range(range.first);

  const int64_t begin = time_now();
  PyObject* result = PyObject_Vectorcall(observed.function.get(), args, static_cast<std::size_t>(count), names);
  const int64_t end = time_now();

  if (!observed.ranges.empty()) {
    const KeptException kept;
    for (auto range = observed.ranges.rbegin(); range != observed.ranges.rend(); ++range) call_range(range->second);
  }
  if (record || describes) {
    const KeptException failure;
    if (record) ask("record_end", record.get(), result ? result : Py_None, failure.get() ? failure.get() : Py_None);
    if (describes)
      crossing->describe(description_of(Passed(args, count, names), result), arrays > made ? arrays - made : 0, made);
  }
  if (crossing) crossing->python_part(begin, end, begin - called + (time_now() - end));
  return result;
}

PyMethodDef method = {"observed", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(call_observed)),
                      METH_FASTCALL | METH_KEYWORDS, nullptr};

void free_observed(PyObject* capsule) { delete static_cast<Observed*>(PyCapsule_GetPointer(capsule, capsule_name)); }

}  // namespace

Ref observed_function(Ref function, PyObject* runner, const std::string& name, int32_t flags) {
  auto observed = std::make_unique<Observed>();
  observed->function = std::move(function);
  observed->runner = Ref::borrow(runner);
  observed->name = name;
  observed->flags = flags;
  const Ref title(PyUnicode_FromString(name.c_str()));
  const Ref ranges = ask("ranges", runner, title.get(), traces() ? Py_True : Py_False);
  for (Py_ssize_t i = 0; ranges && i < PyList_Size(ranges.get()); ++i) {
    PyObject* range = PyList_GET_ITEM(ranges.get(), i);
    observed->ranges.emplace_back(Ref::borrow(PyTuple_GetItem(range, 0)), Ref::borrow(PyTuple_GetItem(range, 1)));
  }
  PyErr_Clear();
  const Ref capsule = checked(PyCapsule_New(observed.get(), capsule_name, free_observed), name);
  (void)observed.release();
  return checked(PyCFunction_New(&method, capsule.get()), name);
}

}  // namespace fpt
