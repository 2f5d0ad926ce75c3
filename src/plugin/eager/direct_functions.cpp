// SPDX-License-Identifier: MIT
#include "plugin/eager/direct_functions.hpp"

#include <cstring>
#include <utility>
#include <vector>

#include "arrays/texts.hpp"
#include "calls/python_side.hpp"
#include "observe/log.hpp"
#include "plugin/direct_answer.hpp"
#include "plugin/direct_tensor.hpp"
#include "plugin/eager/direct_loss.hpp"
#include "plugin/eager/direct_optimizer.hpp"
#include "plugin/eager/functions.hpp"
#include "plugin/failure.hpp"
#include "plugin/parts.hpp"
#include "values/argument_list.hpp"

namespace fpt::direct {
namespace {

/// Arguments of a function: tensors, and what is none. Copies become tensors, which own them.
class FunctionArguments {
 public:
  FunctionArguments(Args args, bool same_layout, const CallName& call) : args_(args.begin(), args.end()) {
    tensors_.resize(args_.size());
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
  Args get() noexcept { return args_; }
  at::Tensor* tensors() noexcept { return tensors_.data(); }

 private:
  void add(std::size_t index, Tensor& tensor, bool same_layout) {
    tensors_[index] = at_tensor_of(tensor, same_layout);
    is_direct_ = is_direct_ && tensors_[index].defined();
  }

  std::vector<fpt_arg> args_;
  std::vector<at::Tensor> tensors_;  // undefined for what is none
  TensorArguments copies_;
  std::vector<std::shared_ptr<const std::string>> texts_;
  bool is_direct_ = true;
};

/// The result; none where nothing was done, and Python is to be asked.
std::optional<c10::IValue> called(std::string_view function, bool same_layout, FunctionArguments& given) {
  return translated([&]() -> std::optional<c10::IValue> {
    try {
      return call_function(function, same_layout, given.get(), given.tensors());
    } catch (const NotHere&) {
      return std::nullopt;
    }
  });
}

}  // namespace

std::unique_ptr<Runner> DirectFunctions::make_python() { return python_side().torch_functions(same_layout_); }

void DirectFunctions::run(const CallRequest& request) {
  const auto function = request.function;
  const Targets& targets = request.targets;
  if (request.object) {
    *request.object = function == "ftn_pytorch_optimizer" ? DirectOptimizer::make(request.inputs)
                      : function == "ftn_pytorch_loss"    ? DirectLoss::make(request.inputs)
                                                          : nullptr;
    return *request.object ? void() : python().run(request);
  }
  const CallName name{function, "torch"};
  const ResultOptions reading{same_layout_, /*cast=*/false, /*brings_to_host=*/false};
  FunctionArguments given(request.inputs, same_layout_, name);
  if (!given.is_direct()) return python().run(request.with(given.get()));
  const Outputs outputs(targets.outputs);
  std::optional<c10::IValue> result = called(function, same_layout_, given);
  if (!result) {
    tell_of_python(function);
    return python().run(request.with(given.get()));
  }
  const bool is_one = targets.tensor && !targets.results && targets.outputs.count == 0;
  if (is_one && result->isTensor() && result->toTensor().defined()) {
    *targets.tensor = tensor_of(std::move(*result).toTensor(), same_layout_);
    return;
  }
  const std::shared_ptr<DirectAnswer> answer = std::make_shared<RecordedAnswer>();
  translated([&] { answer->set(std::move(*result), concat(function, " of torch")); });
  hand_over(answer, name, reading, outputs, targets);
}

std::unique_ptr<Runner> functions_of_torch(bool same_layout) { return std::make_unique<DirectFunctions>(same_layout); }

}  // namespace fpt::direct
