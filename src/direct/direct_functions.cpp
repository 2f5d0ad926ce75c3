// SPDX-License-Identifier: MIT
#include "direct/direct_functions.hpp"

#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

#include "arrays/texts.hpp"
#include "base/error.hpp"
#include "calls/python_side.hpp"
#include "direct/direct_answer.hpp"
#include "direct/direct_optimizer.hpp"
#include "direct/direct_plugin.hpp"
#include "direct/direct_tensor.hpp"
#include "observe/log.hpp"
#include "values/engine.hpp"

namespace fpt {
namespace {

/// Arguments of a function: tensors, and what is none. Copies become tensors, which own them.
class FunctionArguments {
 public:
  FunctionArguments(Args args, bool same_layout, const CallName& call) : args_(args.begin(), args.end()) {
    operands_.resize(args_.size());
    for (std::size_t i = 0; i < args_.size(); ++i) {
      fpt_arg& arg = args_[i];
      if (is_tensor_handle(arg.handle)) {
        add(i, *tensor_at(arg.handle), same_layout);
      } else if (arg.access == FPT_COPY && !is_value(arg)) {
        const TensorPtr made = Tensor::of_arg(arg, same_layout);
        arg = copies_.add(made);
        std::memcpy(arg.name, args[static_cast<int32_t>(i)].name, sizeof arg.name);
        add(i, *made, same_layout);
      } else if (arg.status != FPT_OK || has_kept_text(arg)) {
        const std::string label = concat(argument_label("input", static_cast<int32_t>(i), arg), " of ", call);
        require_described(arg, label);
        if (auto text = text_owner(arg, label)) texts_.push_back(std::move(text));
      }
    }
  }

  /// No tensor is an object of Python alone.
  bool is_direct() const noexcept { return is_direct_; }
  Args get() noexcept { return {args_.data(), static_cast<int32_t>(args_.size())}; }
  const fpt_direct_operand* tensors() const noexcept { return operands_.data(); }

 private:
  void add(std::size_t index, Tensor& tensor, bool same_layout) {
    tensors_.push_back(raw_of(tensor));
    operands_[index] = {tensors_.back().get(), nullptr, tensor.same_layout() != same_layout};
    is_direct_ = is_direct_ && tensors_.back();
  }

  std::vector<fpt_arg> args_;
  std::vector<fpt_direct_operand> operands_;
  std::vector<RawTensor> tensors_;
  TensorArguments copies_;
  std::vector<std::shared_ptr<const std::string>> texts_;
  bool is_direct_ = true;
};

fpt_status call_plugin(std::string_view function, bool same_layout, FunctionArguments& given,
                       fpt_direct_tensor** tensor, fpt_direct_answer* answer) {
  return direct_plugin().tensors.call_function(function.data(), static_cast<int64_t>(function.size()), same_layout,
                                               given.get().first, given.tensors(), given.get().count, tensor, answer);
}

}  // namespace

std::unique_ptr<Runner> DirectFunctions::make_python() { return python_side().torch_functions(same_layout_); }

void DirectFunctions::tell_of_python(std::string_view function) {
  if (!logs(LogLevel::info)) return;
  const std::lock_guard<std::mutex> lock(told_mutex_);
  if (told_.emplace(function).second) log(LogLevel::info, concat(function, " of torch goes to Python"));
}

void DirectFunctions::call(std::string_view function, Args inputs, const Targets& targets) {
  const CallName name{function, "torch"};
  const ResultOptions reading{same_layout_, /*cast=*/false, /*brings_to_host=*/false};
  FunctionArguments given(inputs, same_layout_, name);
  if (!given.is_direct()) return python().call(function, given.get(), targets);
  const Outputs outputs(targets.outputs);
  const auto goes_to_python = [&](fpt_status status) {
    if (status != FPT_DIRECT_NOT_HERE) return require_direct(status), false;
    tell_of_python(function);
    return python().call(function, given.get(), targets), true;
  };
  if (targets.tensor && !targets.results && targets.outputs.count == 0) {
    fpt_direct_tensor* made = nullptr;
    RecordedAnswer other;  // of what is no tensor: single_tensor() says so
    if (goes_to_python(call_plugin(function, same_layout_, given, &made, other.raw()))) return;
    *targets.tensor = made ? tensor_of_raw(made, same_layout_) : single_tensor(other, name, reading);
    return;
  }
  const auto answer = std::make_shared<RecordedAnswer>();
  if (goes_to_python(call_plugin(function, same_layout_, given, nullptr, answer->raw()))) return;
  hand_over(answer, name, reading, outputs, targets);
}

std::unique_ptr<Runner> DirectFunctions::create(std::string_view function, Args inputs) {
  std::unique_ptr<Runner> made = function == "ftn_pytorch_optimizer" ? DirectOptimizer::make(inputs) : nullptr;
  return made ? std::move(made) : DelegatingRunner::create(function, inputs);
}

std::unique_ptr<Runner> torch_functions(bool same_layout) {
  if (!libtorch_engine()) return python_side().torch_functions(same_layout);
  return std::make_unique<DirectFunctions>(same_layout);
}

}  // namespace fpt
