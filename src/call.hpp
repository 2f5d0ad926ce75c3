// SPDX-License-Identifier: MIT
/// One call of a script function: arguments to Python objects, the call, and the checks that follow it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "arg.hpp"
#include "module.hpp"

namespace fpt {

/// Arguments of one call at most, outputs included.
constexpr int max_arguments = 256;

/// "input 2 (\"dt\")" with a name, "input 2" without.
std::string argument_label(const char* what, int32_t index, const fpt_arg& arg);

/// A scalar or text argument as a Python object.
Ref scalar_value(const fpt_arg& arg);

/// The same, and arrays as NumPy arrays that own a copy: for values that outlive the call they came with.
Ref detached_value(fpt_arg& arg, bool same_layout, const std::string& label);

/// Collects arguments, calls, and checks afterwards. Used once. With the interpreter lock held.
class Call {
 public:
  Call(Module& module, Function& function);
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  void add(fpt_arg* args, int32_t count, const char* what);
  /// Pass the outputs as keyword argument `out`.
  void add_out(fpt_arg* outputs, int32_t count);

  /// The result of the function. FPT_ERR_PYTHON with the traceback, FPT_ERR_INPUT_MODIFIED, ...
  /// @param as_list  the first `listed` arguments arrive as one list
  Ref invoke(bool as_list, int32_t listed);

  /// After the result has been delivered or stored: conversions go back into inputs marked as output, and kept
  /// storage is reported. `kept` says that results were handed out, which may rightly share the memory of inputs.
  void finish(Ref result, bool kept);

 private:
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

  PyObject* cached(const fpt_arg& arg, SlotCache& cache) const noexcept;
  Ref value_of(fpt_arg& arg, SlotCache& cache, const char* what, int32_t index);
  Ref array_value(const fpt_arg& arg, bool writable, const Array& array, Storage storage, SlotCache& cache, const char* what, int32_t index);
  void push(Ref value);
  void check_first_call();
  [[noreturn]] void throw_failure();
  void check_inputs_unmodified();
  void report_retained();

  Module& module_;
  Function& function_;
  bool checking_;
  bool may_use_cache_;  // without a closer look
  int count_ = 0;
  int positional_ = 0;
  PyObject* stack_[max_arguments + 2];  // the first entry is scratch space of the callee
  std::vector<Fresh> fresh_;
  std::vector<WriteBack> write_backs_;
  std::vector<std::string> keywords_;
};

}  // namespace fpt
