// SPDX-License-Identifier: MIT
/// One call of a script function: arguments to Python objects, the call, and the checks that follow it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "arrays/arg.hpp"
#include "arrays/policy.hpp"
#include "script/function.hpp"
#include "script/out_argument.hpp"

namespace fpt {

/// Arguments of one call at most, outputs included.
constexpr int max_arguments = 256;

/// A scalar or string argument as a Python object, and arrays as NumPy arrays that own a copy: for values that outlive
/// the call they came with.
Ref detached_value(fpt_arg& arg, bool same_layout, const std::string& label);

/// Such values by their names, in a dict. @param what  one of them, for texts: "config"; FPT_ERR_ARGUMENT without name
Ref named_values(Args values, bool same_layout, const char* what);

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
        framework_(script.framework),
        watches_(framework_ == Framework::torch && (checking_ || torch_access::tells_version_at_once())) {}
  ~Call() {
    for (int i = 1; i <= count_; ++i) Py_DECREF(stack_[i]);
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  /// @param what  "input", or "target" for those that follow the inputs
  void add(Args args, const char* what) {
    what_ = what;
    group_ = count_;
    for (int32_t i = 0; i < args.count; ++i) {
      fpt_arg& arg = args[i];
      SlotCache& cache = function_.inputs.at(static_cast<std::size_t>(count_));
      PyObject* known = may_use_cache_ && !arg.name[0] && !more_ ? cache.hit(arg, framework_) : nullptr;
      if (known && count_ < max_arguments) {
        Py_INCREF(known);
        watched_[count_] = arg.access == FPT_IN ? &arg : nullptr;
        stack_[++count_] = known;
        ++positional_;
      } else {
        add_other(arg, cache, args.count == 1);
      }
    }
  }
  /// Pass the outputs as keyword argument `out`.
  void add_out(Args outputs);
  /// After a call that got them and returned nothing. FPT_ERR_RESULT_COUNT if they were not written, where that is
  /// looked at.
  void require_written() const;

  /// The result of the function. FPT_ERR_PYTHON with the traceback, FPT_ERR_INPUT_MODIFIED, ...
  /// @param listed  this many arguments, the first ones, arrive as one list
  Ref invoke(int32_t listed = no_list) {
    if (listed != no_list || more_ || function_.calls == 0) return invoke_other(listed);
    Ref result = vectorcall(nullptr);
    if (watches_) check_inputs_unmodified();
    return result;
  }
  static constexpr int32_t no_list = -1;

  /// Whether any argument asks torch to compute gradients.
  bool requires_gradients() const;

  /// After everything else: what the call does with arrays on devices, `other` among them, is done.
  void wait(Device other = {}) const {
    const Device device = other.is_host() ? device_ : other;
    if (!device.is_host() && script_.place.stream.waits) wait_for(device);
  }

  /// After the result has been delivered or stored: conversions go back into inputs marked as output, and kept
  /// storage is reported. `kept` says that results were handed out, which may rightly share the memory of inputs.
  void finish(Ref result, bool kept) {
    if (more_) finish_other(std::move(result), kept);
  }

 private:
  /// An array made for this call only, to be checked after it.
  struct Fresh {
    ArrayObject made;
    Array array;
    int position;  // of the argument, from 0
    const fpt_arg* arg;
    bool owned;
  };
  struct WriteBack {
    std::size_t fresh;  // index of the conversion
    Array target;
  };
  /// An array on a device that the script gets as a copy: of another type, or on the host.
  struct Moved {
    Ref there, copy;
    int64_t version;  // of the copy before the call
    const fpt_arg* arg;
    int position;
    bool is_changed() const { return torch_access::version(copy.get()) != version; }
  };
  /// What most calls do without.
  struct More {
    std::vector<Fresh> fresh;
    std::vector<WriteBack> write_backs;
    std::vector<Moved> moved;
    std::vector<std::string> keywords;
    std::optional<OutArgument> out;
  };

  void add_other(fpt_arg& arg, SlotCache& cache, bool is_alone);
  void add_keyword(const char* name);
  Ref value_of(fpt_arg& arg, SlotCache& cache);
  Ref tensor_value(fpt_arg& arg, SlotCache& cache);
  Ref array_value(const fpt_arg& arg, bool writable, const Array& array, std::shared_ptr<void> owner, SlotCache& cache);
  Ref moved_value(const fpt_arg& arg, const Array& array, const ScriptForm& form);
  Ref keyword_names();
  Ref invoke_other(int32_t listed);
  Ref vectorcall(PyObject* keyword_names) {
    ++function_.calls;
    Ref result(PyObject_Vectorcall(function_.callable.get(), passed_,
                                   static_cast<std::size_t>(positional_) | PY_VECTORCALL_ARGUMENTS_OFFSET,
                                   keyword_names));
    if (!result) throw_failure();
    return result;
  }
  void finish_other(Ref result, bool kept);
  void push(Ref value);
  Passed passed();
  void check_first_call();
  [[noreturn]] void throw_failure();
  /// The text of a failure of the function, with what it was called with.
  std::string with_arguments(const std::string& failure);
  void check_inputs_unmodified() {
    const int changed = torch_access::first_changed(stack_ + 1, watched_, count_);
    if (changed >= 0) refuse_modified(changed);
  }
  void check_copies_unmodified();
  [[noreturn]] void refuse_modified(int position);
  /// "input 2", "target 1" for the argument of that position.
  std::string label_of(int position, const fpt_arg& arg) const;
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
  bool watches_;  // inputs for changes
  int count_ = 0;
  int positional_ = 0;
  const char* what_ = "input";
  Device device_;  // of an argument that is on one
  int group_ = 0;  // where the arguments begin that are called so
  std::unique_ptr<More> more_;
  PyObject** passed_ = stack_ + 1;
  PyObject* stack_[max_arguments + 2];         // the first entry is scratch space of the callee
  const fpt_arg* watched_[max_arguments + 1];  // arrays that the script must not change, null for others
};

}  // namespace fpt
