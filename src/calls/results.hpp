// SPDX-License-Identifier: MIT
/// Results on their way to Fortran: into outputs, into torch_results, into a torch_tensor. Knows nothing of Python.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "arrays/arg.hpp"
#include "arrays/device.hpp"
#include "arrays/result_names.hpp"
#include "base/handle.hpp"
#include "calls/answer.hpp"

namespace fpt {

/// How results are read, settled by the options of a load.
struct ResultOptions {
  bool same_layout;     ///< axis order of the script
  bool cast;            ///< outputs may narrow
  bool brings_to_host;  ///< the computation is on a device, so results come to the host unasked
};

/// Where the results of a call go.
struct Targets {
  Args outputs;
  fpt_results* results = nullptr;
  TensorPtr* tensor = nullptr;  ///< receives the one result
};

/// The outputs of a call, with the memory that they stand for in place of tensors among them.
/// FPT_ERR_ARGUMENT for a tensor that cannot be written, FPT_ERR_DEVICE for memory of a device where results cannot go
/// there: before anything is computed for them.
class FPT_API Outputs {
 public:
  explicit Outputs(Args args, bool may_be_on_device = true) : args_(args) {
    for (const fpt_arg& arg : args)
      if (is_tensor_handle(arg.handle)) {
        describe();
        break;
      }
    for (const fpt_arg& arg : args_)
      if (const Device device = device_of(arg.data); !device.is_host()) {
        if (!may_be_on_device) refuse(arg, "results of NumPy cannot go there");
        on_device_ = &arg;
        device_ = device;
      }
  }
  Outputs(const Outputs&) = delete;
  Outputs& operator=(const Outputs&) = delete;
  Args get() const noexcept { return args_; }
  /// They have their values: torch is told of those that are tensors.
  void written() const noexcept {
    for (const TensorOutput& each : tensors_) each.written();
  }
  /// Of an output that is on a device; else the host.
  Device device() const noexcept { return device_; }
  /// Before anything is computed: FPT_ERR_DEVICE if `start`, which may fail so, cannot use that device.
  template <class Start>
  void start_device(const Start& start) const {
    if (device_.is_host()) return;
    try {
      start(device_);
    } catch (const Error& error) {
      refuse(*on_device_, error.text());
    }
  }

 private:
  void describe();
  [[noreturn]] void refuse(const fpt_arg& arg, const std::string& reason) const;

  Args args_;
  Device device_;
  const fpt_arg* on_device_ = nullptr;
  std::vector<fpt_arg> described_;
  std::vector<TensorOutput> tensors_;
};

/// Copy results into outputs, the i-th into the i-th, or by name. Everything is checked before the first copy; memory
/// that is already where it should be is left alone. FPT_ERR_RESULT_COUNT, _NAME, _TYPE, _SHAPE, _DTYPE.
FPT_API void deliver(Answer& answer, const CallName& call, const ResultOptions& reading, Args outputs);

/// Hand the results of a call to all that they go to; nothing is copied before all of it may be.
FPT_API void hand_over(const std::shared_ptr<Answer>& answer, const CallName& call, const ResultOptions& reading,
                       const Outputs& outputs, const Targets& targets);

/// The one array of a call whose result has to be a tensor. FPT_ERR_RESULT_COUNT, FPT_ERR_RESULT_TYPE.
FPT_API TensorPtr single_tensor(Answer& answer, const CallName& call, const ResultOptions& reading);

/// What torch_results holds.
class Results {
 public:
  FPT_API Results(std::shared_ptr<Answer> answer, const CallName& call, const ResultOptions& reading);

  const ResultNames& names() const noexcept { return names_; }
  Answer& answer() noexcept { return *answer_; }
  TensorPtr tensor(int32_t index);
  /// Memory of an array, not copied. FPT_ERR_RESULT_TYPE, FPT_ERR_DTYPE, FPT_ERR_RANK, FPT_ERR_DEVICE.
  Array memory(int32_t index, int32_t dtype, int32_t rank);
  void copy_to(int32_t index, const fpt_arg& output, bool cast);
  /// A string; lives as long as the results. FPT_ERR_DTYPE.
  std::string_view text(int32_t index);

 private:
  std::shared_ptr<Answer> answer_;
  ResultNames names_;
  ResultOptions reading_;
};

using ResultsTable = HandleTable<Results, HandleKind::results>;
ResultsTable& results_table();
/// New contents for a handle, which becomes a new one if it was 0 or stale.
FPT_API void store_results(int64_t* handle, Results results);

}  // namespace fpt
