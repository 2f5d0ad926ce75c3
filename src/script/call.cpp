// SPDX-License-Identifier: MIT
#include "script/call.hpp"

#include <complex>
#include <cstring>
#include <string_view>
#include <variant>

#include "arrays/copy.hpp"
#include "arrays/scalar.hpp"
#include "base/error.hpp"
#include "calls/tensor.hpp"
#include "python/interpreter.hpp"

namespace fpt {
namespace {

struct ToPython {
  PyObject* operator()(bool value) const { return PyBool_FromLong(value); }
  PyObject* operator()(int64_t value) const { return PyLong_FromLongLong(value); }
  PyObject* operator()(double value) const { return PyFloat_FromDouble(value); }
  PyObject* operator()(std::complex<double> value) const { return PyComplex_FromDoubles(value.real(), value.imag()); }
  PyObject* operator()(std::string_view value) const {
    return PyUnicode_DecodeUTF8(value.data(), static_cast<Py_ssize_t>(value.size()), "replace");
  }
};

Ref scalar_value(const fpt_arg& arg) { return checked(std::visit(ToPython(), scalar_of(arg)), "passing a scalar"); }

}  // namespace

Ref detached_value(fpt_arg& arg, bool same_layout, const std::string& label) {
  if (is_tensor_handle(arg.handle)) fail(FPT_ERR_ARGUMENT, label, " is a tensor: pass the array itself");
  if (is_value(arg)) return scalar_value(arg);
  if (!is_argument(arg.dtype))
    fail(FPT_ERR_KIND, label, " is ", dtype_fortran_name(arg.dtype), " passed by reference: pass it with torch_in");
  const Storage claimed = claim_copy(arg);
  const Wish wish{Framework::numpy, same_layout, arg.dtype, true, false};
  Array seen;
  return make_wished(array_of(arg), wish, seen).object;
}

void Call::push(Ref value) {
  if (count_ == max_arguments)
    fail(FPT_ERR_ARGUMENT, "more than ", max_arguments, " arguments in one call of ", function_.name);
  stack_[++count_] = value.release();
}

void Call::add_other(fpt_arg& arg, SlotCache& cache, const char* what, int32_t index, int32_t count) {
  push(value_of(arg, cache, what, index));
  const bool follows_names = more_ && !more_->keywords.empty();
  if (arg.name[0]) {
    more().keywords.emplace_back(arg.name);
  } else if (follows_names) {
    // a target beside named inputs: the only positional argument that can follow keywords gets the name it has
    if (std::strcmp(what, "target") != 0 || count != 1)
      fail(FPT_ERR_ARGUMENT, argument_label(what, index, arg), " of ", function_.name,
           " has no name but follows named arguments: name all of them, or put those without a name first");
    more().keywords.emplace_back("target");
  } else {
    ++positional_;
  }
}

void Call::add_out(Args outputs) {
  const int32_t count = outputs.count;
  const bool named = count > 1 && outputs[0].name[0] != '\0';
  Ref several;
  if (count > 1) several = checked(named ? PyDict_New() : PyList_New(count), "out");
  for (int32_t i = 0; i < count; ++i) {
    const auto label = [&] { return argument_label("output", i, outputs[i]); };  // a text costs more than the rest
    if (outputs[i].status != FPT_OK) require_described(outputs[i], label());
    if (outputs[i].access != FPT_OUT && outputs[i].rank > 0)
      fail(FPT_ERR_ARGUMENT, label(), " was described by torch_in or torch_copy, but ", function_.name,
           " writes into it (its parameter `out`): use torch_out");
    if (is_value(outputs[i]) || !is_argument(outputs[i].dtype))
      fail(FPT_ERR_KIND, label(), " cannot be written in place by ", function_.name,
           ", which has a parameter `out`: arrays and torch_out of a number can");
    const Array array = array_of(outputs[i]);
    const Wish wish{script_.framework, script_.options.same_layout, array.dtype, false, false};
    Ref value;
    try {
      value = function_.outputs.at(static_cast<std::size_t>(i)).get(array, wish);
    } catch (const Error& error) {
      fail(error.status(), label(), " of ", function_.name, ": ", error.text());
    }
    if (named != (outputs[i].name[0] != '\0') && count > 1)
      fail(FPT_ERR_RESULT_NAME, function_.name, " of ", script_.name, ": either all outputs have names or none has");
    if (count == 1)
      push(std::move(value));
    else if (!named)
      PyList_SET_ITEM(several.get(), i, value.release());
    else if (PyDict_SetItemString(several.get(), outputs[i].name, value.get()) != 0)
      throw_python_error(label());
  }
  if (several) push(std::move(several));
  more().keywords.emplace_back("out");
}

Ref Call::value_of(fpt_arg& arg, SlotCache& cache, const char* what, int32_t index) {
  if (arg.status != FPT_OK) require_described(arg, concat(argument_label(what, index, arg), " of ", function_.name));
  if (is_tensor_handle(arg.handle)) {
    Tensor& tensor = tensor_at(arg.handle);
    if (!tensor.object) {
      if (is_value(tensor.arg)) return scalar_value(tensor.arg);
      return array_value(arg, tensor.arg.access == FPT_OUT, tensor.array, {}, cache, what, index);
    }
    const bool fits = (script_.framework == Framework::torch) == is_tensor(tensor.object) &&
                      tensor.same_layout == script_.options.same_layout &&
                      script_.options.wanted_dtype(tensor.array.dtype) == tensor.array.dtype &&
                      !script_.options.copies_inputs;
    if (fits) return Ref::borrow(tensor.object);
    require_memory(tensor.array, tensor.array.dtype, tensor.array.rank, argument_label(what, index, arg));
    return array_value(arg, arg.access == FPT_OUT, tensor.array, {}, cache, what, index);
  }
  if (is_value(arg)) return scalar_value(arg);
  return array_value(arg, arg.access == FPT_OUT, array_of(arg), claim_copy(arg), cache, what, index);
}

Ref Call::array_value(const fpt_arg& arg, bool writable, const Array& array, Storage storage, SlotCache& cache,
                      const char* what, int32_t index) {
  if (!is_of_tensors(array.dtype) || is_half(array.dtype))
    fail(FPT_ERR_KIND, argument_label(what, index, arg), " of ", function_.name, " is ",
         dtype_fortran_name(array.dtype),
         ", which can be an output but not an input that the script changes: pass it with torch_in");
  const Wish wish{script_.framework, script_.options.same_layout, script_.options.wanted_dtype(array.dtype),
                  script_.options.copies_inputs, !writable};
  try {
    if (storage) {
      if (wish.dtype == array.dtype)
        return make_array(wish.framework, wish.in_script_order(array), std::move(storage), false).object;
      Array seen;
      return make_wished(array, wish, seen).object;
    }
    if (!checking_ && !wish.copies(array)) return cache.get(array, wish);
    Array seen;
    Made made = make_wished(array, wish, seen);
    Ref value = made.object;
    if (writable && wish.copies(array)) more().write_backs.push_back({more().fresh.size(), array});
    more().fresh.push_back({std::move(made), seen, count_, index, &arg, what, writable, wish.copies(array)});
    return value;
  } catch (const Error& error) {
    fail(error.status(), argument_label(what, index, arg), " of ", function_.name, ": ", error.text());
  }
}

void Call::check_first_call() {
  const Ref args = checked(PyTuple_New(positional_), function_.name);
  for (int i = 0; i < positional_; ++i) {
    Py_INCREF(stack_[i + 1]);
    PyTuple_SET_ITEM(args.get(), i, stack_[i + 1]);
  }
  const Ref kwargs = checked(PyDict_New(), function_.name);
  for (std::size_t i = 0; more_ && i < more_->keywords.size(); ++i)
    if (PyDict_SetItemString(kwargs.get(), more_->keywords[i].c_str(), stack_[positional_ + 1 + static_cast<int>(i)]) !=
        0)
      throw_python_error(function_.name);
  checked(PyObject_CallFunction(embed("first_call"), "OsOO", script_.runner.get(), function_.name.c_str(), args.get(),
                                kwargs.get()),
          function_.name);
}

Ref Call::invoke_other(int32_t listed) {
  const bool has_keywords = more_ && !more_->keywords.empty();
  if (listed != no_list && !has_keywords) {
    Ref list = checked(PyList_New(listed), function_.name);
    for (int32_t i = 0; i < listed; ++i) PyList_SET_ITEM(list.get(), i, stack_[i + 1]);
    for (int i = listed + 1; i <= count_; ++i) stack_[i - listed + 1] = stack_[i];
    count_ = positional_ = count_ - listed + 1;
    stack_[1] = list.release();
  }
  if (has_keywords && function_.keywords != more_->keywords) {
    const std::vector<std::string>& keywords = more_->keywords;
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
    function_.keyword_names = std::move(names);
  }
  if (function_.calls == 0) check_first_call();
  const Ref names = has_keywords ? function_.keyword_names : Ref();
  Ref result = vectorcall(names.get());
  if (checking_) check_inputs_unmodified();
  return result;
}

void Call::throw_failure() {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  const bool is_value_error = PyErr_GivenExceptionMatches(type, PyExc_ValueError) != 0;
  if (!traceback && PyErr_GivenExceptionMatches(type, PyExc_TypeError)) {
    // raised by the call itself: the check of the first call says more about it
    Ref owned_type(type), owned_value(value);
    check_first_call();
    type = owned_type.release();
    value = owned_value.release();
  }
  PyErr_Restore(type, value, traceback);
  try {
    throw_python_error(concat(function_.name, " of ", script_.name));
  } catch (const Error& error) {
    // NumPy itself guards arrays that were not marked as output
    if (script_.framework == Framework::numpy && is_value_error &&
        error.text().find("is read-only") != std::string::npos)
      fail(FPT_ERR_INPUT_MODIFIED, error.text(),
           "\nThe script may change only arrays passed with torch_out: pass it so, or change a copy in the script.");
    throw;
  }
}

void Call::check_inputs_unmodified() {
  if (!more_) return;
  for (const Fresh& fresh : more_->fresh)
    if (!fresh.writable && !fresh.owned && version_of(fresh.made.object.get(), script_.framework) != 0)
      fail(FPT_ERR_INPUT_MODIFIED, argument_label(fresh.what, fresh.index, *fresh.arg), " was changed in place by ",
           function_.name, " of ", script_.name,
           " but not passed with torch_out: pass it so, or change a copy in the script (x = x.clone())");
}

void Call::finish_other(Ref result, bool kept) {
  // the memory is gone where the script has pointed the tensor elsewhere (x.set_, x.data =)
  for (const WriteBack& back : more_->write_backs)
    if (is_retained(more_->fresh[back.fresh].made)) copy_back(more_->fresh[back.fresh].array, back.target);
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
    warn(concat(function_.name, " of ", script_.name, " kept ", argument_label(fresh.what, fresh.index, *fresh.arg),
                ", or a view of it, beyond the call. Its memory belongs to Fortran and will change: keep x.clone(), ",
                "or load with inputs=\"copy\"."));
  }
}

}  // namespace fpt
