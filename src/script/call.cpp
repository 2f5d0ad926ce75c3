// SPDX-License-Identifier: MIT
#include "script/call.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "arrays/copy.hpp"
#include "base/error.hpp"
#include "python/interpreter.hpp"
#include "values/object_tensor.hpp"
#include "values/python_value.hpp"
#include "values/scopes.hpp"

namespace fpt {
namespace {

/// A tensor of torch as the script wants it, with the graph behind it.
Ref adapted(PyObject* object, const Tensor& tensor, int32_t dtype, const Options& options) {
  const Ref context(PyUnicode_FromString(dtype == FPT_NONE ? "" : dtype_name(dtype)));
  return checked(PyObject_CallFunctionObjArgs(embed("adapt"), object, context.get(),
                                              tensor.same_layout() == options.same_layout ? Py_False : Py_True,
                                              options.copies_inputs ? Py_True : Py_False, nullptr),
                 "passing a tensor");
}

}  // namespace

Ref detached_value(fpt_arg& arg, bool same_layout, const std::string& label) {
  if (is_tensor_handle(arg.handle)) fail(FPT_ERR_ARGUMENT, label, " is a tensor: pass the array itself");
  if (is_value(arg)) return python_value(arg);
  if (!is_argument(arg.dtype))
    fail(FPT_ERR_KIND, label, " is ", dtype_fortran_name(arg.dtype), " passed by reference: pass it with torch_in");
  const Storage claimed = claim_copy(arg);
  const ScriptForm form{Framework::numpy, same_layout, arg.dtype, true, false};
  Array seen;
  return make_in_form(array_of(arg), form, seen).object;
}

Ref named_values(Args values, bool same_layout, const char* what) {
  Ref dict = checked(PyDict_New(), what);
  for (int32_t i = 0; i < values.count; ++i) {
    fpt_arg& arg = values[i];
    const std::string label = argument_label(what, i, arg);
    require_described(arg, label);
    if (!arg.name[0]) fail(FPT_ERR_ARGUMENT, label, " needs a name: write torch_in(\"name\", value)");
    const Ref value = detached_value(arg, same_layout, label);
    if (PyDict_SetItemString(dict.get(), arg.name, value.get()) != 0) throw_python_error(label);
  }
  return dict;
}

void Call::push(Ref value) {
  if (count_ == max_arguments)
    fail(FPT_ERR_ARGUMENT, "more than ", max_arguments, " arguments in one call of ", function_.name);
  stack_[++count_] = value.release();
}

void Call::add_other(fpt_arg& arg, SlotCache& cache, bool is_alone) {
  watched_[count_] = nullptr;
  push(value_of(arg, cache));
  if (arg.name[0]) {
    add_keyword(arg.name);
  } else if (more_ && !more_->keywords.empty()) {
    // a target beside named inputs: the only positional argument that can follow keywords gets the name it has
    if (std::strcmp(what_, "target") != 0 || !is_alone)
      refuse_nameless(concat(label_of(count_ - 1, arg), " of ", function_.name));
    add_keyword("target");
  } else {
    ++positional_;
  }
}

void Call::add_keyword(const char* name) {
  std::vector<std::string>& keywords = more().keywords;
  if (std::find(keywords.begin(), keywords.end(), name) != keywords.end())
    refuse_same_name("arguments", function_.name, name);
  keywords.emplace_back(name);
}

void Call::add_out(Args outputs) {
  watched_[count_] = nullptr;
  push(more().out.emplace(script_, function_, outputs, checking_).object());
  add_keyword("out");
}

void Call::require_written() const {
  if (checking_ && more_ && more_->out) more_->out->require_written(function_.calls == 1);
}

std::string Call::label_of(int position, const fpt_arg& arg) const {
  return position < group_ ? argument_label("input", position, arg) : argument_label(what_, position - group_, arg);
}

Ref Call::value_of(fpt_arg& arg, SlotCache& cache) {
  if (arg.status != FPT_OK) require_described(arg, concat(label_of(count_, arg), " of ", function_.name));
  if (is_tensor_handle(arg.handle)) return tensor_value(arg, cache);
  if (is_value(arg)) return python_value(arg);
  Storage copy = claim_copy(arg);
  const Array array = copy ? array_of(arg) : placed_array_of(arg);
  return array_value(arg, arg.access == FPT_OUT, array, std::move(copy), cache);
}

Ref Call::tensor_value(fpt_arg& arg, SlotCache& cache) {
  const TensorPtr kept = tensor_at(arg.handle);
  Tensor& tensor = *kept;
  const bool wants_torch = script_.framework == Framework::torch;
  // what computes without torch needs the memory alone: an object would be one of torch
  const bool is_memory = !wants_torch && tensor.is_of_libtorch();
  Ref object = is_memory ? Ref() : script_.keeps_tensors ? torch_object_of(tensor) : object_of(tensor);
  if (!object && !is_memory)
    return array_value(arg, tensor.described_as(arg).access == FPT_OUT, tensor.array(), tensor.owner(), cache);
  if (wants_torch && is_tensor(object.get())) {
    const bool same_layout = tensor.same_layout() == script_.options.same_layout;
    if (same_layout && script_.passes_arrays_as_they_are()) return object;
    const int32_t dtype = tensor.array().dtype, wanted = script_.options.wanted_dtype(dtype);
    if (same_layout && wanted == dtype && !script_.options.copies_inputs) return object;
    return adapted(object.get(), tensor, wanted == dtype ? FPT_NONE : wanted, script_.options);
  }
  if (!wants_torch && records_gradients(tensor))
    fail(FPT_ERR_ARGUMENT, label_of(count_, arg), " of ", function_.name, " of ", script_.name,
         " requires gradients, and what computes without torch records none: switch them off with scope%no_grad()");
  const TensorPtr held = holding_memory(kept);
  const Array array = held->array();
  if (!wants_torch && object && !is_tensor(object.get()) && tensor.same_layout() == script_.options.same_layout &&
      script_.options.wanted_dtype(array.dtype) == array.dtype && !script_.options.copies_inputs)
    return object;
  require_memory(array, array.dtype, array.rank, label_of(count_, arg));
  return array_value(arg, arg.access == FPT_OUT, array, held, cache);
}

Ref Call::array_value(const fpt_arg& arg, bool writable, const Array& array, std::shared_ptr<void> owner,
                      SlotCache& cache) {
  if (!is_of_tensors(array.dtype) || is_half(array.dtype))
    fail(FPT_ERR_KIND, label_of(count_, arg), " of ", function_.name, " is ", dtype_fortran_name(array.dtype),
         ", which can be an output but not an input that the script changes: pass it with torch_in");
  const ScriptForm form{script_.framework,
                        script_.options.same_layout,
                        script_.options.wanted_dtype(array.dtype),
                        script_.options.copies_inputs,
                        !writable,
                        script_.refers_weakly};
  try {
    if (!array.device.is_host()) {
      if (script_.framework != Framework::torch)
        refuse_memory(array.device, "and the script uses NumPy, which knows the host only: pass a host array");
      device_ = array.device;
      if (form.copies(array) || script_.place.is_host) return moved_value(arg, array, form);
    }
    // what the script keeps of memory with an owner lives on; a torch_copy, which nobody else has, is a copy already
    const bool is_copy = owner.use_count() == 1 && form.dtype == array.dtype;
    if (owner && (is_copy || !form.copies(array)))
      return make_array(form.framework, form.in_script_order(array), std::move(owner), false).object;
    const bool owned = form.copies(array);
    if (!writable && !owned) watched_[count_] = &arg;
    if (!checking_ && !owned) return cache.get(array, form);
    Array seen;
    ArrayObject made = make_in_form(array, form, seen);
    Ref value = made.object;
    if (writable && owned && !array.is_protected) more().write_backs.push_back({more().fresh.size(), array});
    more().fresh.push_back({std::move(made), seen, count_, &arg, owned});
    return value;
  } catch (const Error& error) {
    fail(error.status(), label_of(count_, arg), " of ", function_.name, ": ", error.text());
  }
}

Ref Call::moved_value(const fpt_arg& arg, const Array& array, const ScriptForm& form) {
  if (script_.place.is_host && !std::exchange(script_.place.copies_told, true))
    warn_of_copies(label_of(count_, arg), concat(function_.name, " of ", script_.name), device_name(array.device),
                   "the host");
  Ref there = make_array(form.framework, form.in_script_order(array), nullptr, false).object;
  Ref copy = checked(PyObject_CallFunction(embed("move"), "Oss", there.get(), script_.place.is_host ? "cpu" : "",
                                           form.dtype == array.dtype ? "" : dtype_name(form.dtype)),
                     "copying an array");
  more().moved.push_back({std::move(there), copy, torch_access::version(copy.get()), &arg, count_});
  return copy;
}

bool Call::requires_gradients() const {
  for (int i = 1; i <= count_; ++i) {
    if (!is_tensor(stack_[i])) continue;
    const Ref wanted = checked(PyObject_GetAttrString(stack_[i], "requires_grad"), "an argument");
    if (wanted.get() == Py_True) return true;
  }
  return false;
}

Passed Call::passed() {
  Passed all(passed_, positional_, more_ && !more_->keywords.empty() ? keyword_names().get() : nullptr);
  if (PyErr_Occurred()) throw_python_error(function_.name);
  return all;
}

void Call::check_first_call() {
  const Passed all = passed();
  checked(PyObject_CallFunction(embed("first_call"), "OsOO", script_.runner.get(), function_.name.c_str(),
                                all.positional.get(), all.named.get()),
          function_.name);
}

Ref Call::keyword_names() {
  const std::vector<std::string>& keywords = more_->keywords;
  if (function_.keywords == keywords) return function_.keyword_names;
  Ref names = checked(PyTuple_New(static_cast<Py_ssize_t>(keywords.size())), function_.name);
  for (std::size_t i = 0; i < keywords.size(); ++i) {
    PyObject* name = PyUnicode_InternFromString(keywords[i].c_str());
    if (!name) {
      PyErr_Clear();
      fail(FPT_ERR_ARGUMENT, "the name of argument ", positional_ + static_cast<int>(i) + 1, " of ", function_.name,
           " is not UTF-8");
    }
    PyTuple_SET_ITEM(names.get(), static_cast<Py_ssize_t>(i), name);
  }
  function_.keywords = keywords;
  function_.keyword_names = names;
  return names;
}

std::string Call::with_arguments(const std::string& failure) {
  const Passed all = passed();
  const Ref text(PyObject_CallFunction(embed("describe_arguments"), "OsOOs", script_.runner.get(),
                                       function_.name.c_str(), all.positional.get(), all.named.get(), failure.c_str()));
  const char* lines = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
  if (!lines) PyErr_Clear();  // arguments may be objects whose description fails
  return lines && *lines ? concat(failure, "\n", lines) : failure;
}

Ref Call::invoke_other(int32_t listed) {
  const bool has_keywords = more_ && !more_->keywords.empty();
  Ref list;
  PyObject* row[max_arguments + 2];
  if (listed != no_list && !has_keywords) {
    list = checked(PyList_New(listed), function_.name);
    for (int32_t i = 0; i < listed; ++i) PyList_SET_ITEM(list.get(), i, Ref::borrow(stack_[i + 1]).release());
    row[1] = list.get();
    positional_ = count_ - listed + 1;
    std::copy(stack_ + 1 + listed, stack_ + 1 + count_, row + 2);
    passed_ = row + 1;
  }
  // held here: what Python runs before the call may let another thread call the function by other names
  const Ref names = has_keywords ? keyword_names() : Ref();
  if (function_.calls == 0) check_first_call();
  Ref result = vectorcall(names.get());
  if (watches_) check_inputs_unmodified();
  if (more_) check_copies_unmodified();
  return result;
}

void Call::check_copies_unmodified() {
  for (const Moved& array : more_->moved)
    if (array.arg->access != FPT_OUT && array.is_changed()) {
      watched_[array.position] = array.arg;
      refuse_modified(array.position);
    }
}

void Call::throw_failure() {
  Ref failure = take_exception();
  const bool is_value_error = PyErr_GivenExceptionMatches(failure.get(), PyExc_ValueError) != 0;
  const bool is_type_error = PyErr_GivenExceptionMatches(failure.get(), PyExc_TypeError) != 0;
  // the check of the first call says more about arguments that do not fit, also behind what wraps the function
  if (is_type_error) check_first_call();
  set_exception(std::move(failure));
  try {
    throw_python_error(concat(function_.name, " of ", script_.name));
  } catch (const Error& error) {
    // NumPy itself guards arrays that were not marked as output
    if (script_.framework == Framework::numpy && is_value_error &&
        error.text().find("is read-only") != std::string::npos)
      fail(FPT_ERR_INPUT_MODIFIED, error.text(),
           "\nThe script may change only arrays passed with torch_out: pass it so, or change a copy in the script (x = "
           "x.copy()).");
    if (error.status() != FPT_ERR_PYTHON) throw;
    fail(error.status(), with_arguments(error.text()));
  }
}

void Call::refuse_modified(int position) {
  function_.inputs.at(static_cast<std::size_t>(position)).forget(stack_[position + 1]);
  refuse_change(label_of(position, *watched_[position]), concat(function_.name, " of ", script_.name), "script");
}

void Call::finish_other(Ref result, bool kept) {
  // the memory is gone where the script has pointed the tensor elsewhere (x.set_, x.data =)
  for (const WriteBack& back : more_->write_backs)
    if (is_retained(more_->fresh[back.fresh].made)) copy_back(more_->fresh[back.fresh].array, back.target);
  for (const Moved& array : more_->moved)
    if (array.is_changed())
      checked(PyObject_CallFunction(embed("move_back"), "OO", array.copy.get(), array.there.get()), "copying an array");
  result = Ref();
  if (checking_ && !kept) report_retained();
}

void Call::report_retained() {
  for (int i = 1; i <= count_; ++i) Py_DECREF(stack_[i]);
  count_ = 0;
  bool collected = false;
  for (Fresh& fresh : more_->fresh) {
    if (fresh.owned) continue;
    fresh.made.object = Ref();
    const auto position = static_cast<std::size_t>(fresh.position);
    if (function_.reported.size() <= position) function_.reported.resize(position + 1);
    if (!is_retained(fresh.made) || function_.reported[position]) continue;
    if (!collected) {
      PyGC_Collect();  // reference cycles hold arrays for a while, which is not keeping them
      collected = true;
      if (!is_retained(fresh.made)) continue;
    }
    function_.reported[position] = true;
    warn_of_kept(label_of(fresh.position, *fresh.arg), concat(function_.name, " of ", script_.name),
                 framework_ == Framework::torch ? "x.clone()" : "x.copy()");
  }
}

}  // namespace fpt
