// SPDX-License-Identifier: MIT
/// One call of a script function: arguments to Python objects, the call, and the checks that follow it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "arrays/arg.hpp"
#include "script/function.hpp"

namespace fpt {

/// Arguments of one call at most, outputs included.
constexpr int max_arguments = 256;

/// A scalar or string argument as a Python object, and arrays as NumPy arrays that own a copy: for values that outlive
/// the call they came with.
Ref detached_value(fpt_arg& arg, bool same_layout, const std::string& label);

/// Collects arguments, calls, and checks afterwards. Used once. With the interpreter lock held.
///
/// What is inline here is the call that a simulation repeats: arrays seen before, without names, nothing to check.
class Call {
 public:
  Call(const Script& script, Function& function)
      : script_(script),
        function_(function),
        checking_(script.options.safe || function.calls < checked_calls),
        may_use_cache_(!checking_ && script.passes_arrays_as_they_are()),
        framework_(script.framework) {}
  ~Call() {
    for (int i = 1; i <= count_; ++i) Py_DECREF(stack_[i]);
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  void add(Args args, const char* what) {
    for (int32_t i = 0; i < args.count; ++i) {
      fpt_arg& arg = args[i];
      SlotCache& cache = function_.inputs.at(static_cast<std::size_t>(count_));
      PyObject* known = may_use_cache_ && !arg.name[0] && !more_ ? cache.hit(arg, framework_) : nullptr;
      if (known && count_ < max_arguments) {
        Py_INCREF(known);
        stack_[++count_] = known;
        ++positional_;
      } else {
        add_other(arg, cache, what, i, args.count);
      }
    }
  }
  /// Pass the outputs as keyword argument `out`.
  void add_out(Args outputs);

  /// The result of the function. FPT_ERR_PYTHON with the traceback, FPT_ERR_INPUT_MODIFIED, ...
  /// @param listed  this many arguments, the first ones, arrive as one list
  Ref invoke(int32_t listed = no_list) {
    if (listed != no_list || more_ || function_.calls == 0) return invoke_other(listed);
    return vectorcall(nullptr);
  }
  static constexpr int32_t no_list = -1;

  /// After the result has been delivered or stored: conversions go back into inputs marked as output, and kept
  /// storage is reported. `kept` says that results were handed out, which may rightly share the memory of inputs.
  void finish(Ref result, bool kept) {
    if (more_) finish_other(std::move(result), kept);
  }

 private:
  static constexpr uint64_t checked_calls = 2;

  /// An array made for this call only, to be checked after it.
  struct Fresh {
    Made made;
    Array array;
    int position;  // of the argument, from 0
    int index;     // within its group
    const fpt_arg* arg;
    const char* what;
    bool writable, owned;
  };
  struct WriteBack {
    std::size_t fresh;  // index of the conversion
    Array target;
  };
  /// What most calls do without.
  struct More {
    std::vector<Fresh> fresh;
    std::vector<WriteBack> write_backs;
    std::vector<std::string> keywords;
  };

  void add_other(fpt_arg& arg, SlotCache& cache, const char* what, int32_t index, int32_t count);
  Ref value_of(fpt_arg& arg, SlotCache& cache, const char* what, int32_t index);
  Ref array_value(const fpt_arg& arg, bool writable, const Array& array, Storage storage, SlotCache& cache,
                  const char* what, int32_t index);
  Ref invoke_other(int32_t listed);
  Ref vectorcall(PyObject* keyword_names) {
    ++function_.calls;
    Ref result(PyObject_Vectorcall(function_.callable.get(), stack_ + 1,
                                   static_cast<std::size_t>(positional_) | PY_VECTORCALL_ARGUMENTS_OFFSET,
                                   keyword_names));
    if (!result) throw_failure();
    return result;
  }
  void finish_other(Ref result, bool kept);
  void push(Ref value);
  void check_first_call();
  [[noreturn]] void throw_failure();
  void check_inputs_unmodified();
  void report_retained();
  More& more() {
    if (!more_) more_ = std::make_unique<More>();
    return *more_;
  }

  const Script& script_;
  Function& function_;
  bool checking_;
  bool may_use_cache_;  // without a closer look
  Framework framework_;
  int count_ = 0;
  int positional_ = 0;
  std::unique_ptr<More> more_;
  PyObject* stack_[max_arguments + 2];  // the first entry is scratch space of the callee
};

}  // namespace fpt
