// SPDX-License-Identifier: MIT
#include "direct/torch_functions.hpp"

#include <utility>
#include <vector>

#include "arrays/result_names.hpp"
#include "calls/python_side.hpp"
#include "direct/object_arguments.hpp"
#include "direct/tensor_copy.hpp"
#include "direct/torch_side.hpp"
#include "values/fortran_functions.hpp"

namespace fpt {
namespace {

/// A result as a tensor: that of torch, or numbers in a row. Null where there is none.
TensorPtr tensor_in(TorchValue& result, bool same_layout) {
  if (auto* tensor = std::get_if<TensorPtr>(&result)) return std::move(*tensor);
  const auto* numbers = std::get_if<std::vector<int64_t>>(&result);
  if (!numbers) return nullptr;
  const auto kept = std::make_shared<std::vector<int64_t>>(*numbers);
  const Array row = row_of(kept->data(), FPT_INT64, static_cast<int64_t>(kept->size()));
  return Tensor::of_memory(row, kept, same_layout);
}

}  // namespace

TorchFunctions::TorchFunctions(bool same_layout)
    : same_layout_(same_layout),
      of_engine_(libtorch_engine() ? torch_side().functions(same_layout) : python_side().torch_functions(same_layout)) {
}

void TorchFunctions::run(const CallRequest& request) {
  const FortranFunction own = fortran_function(request.function);
  if (!own) return other().run(request);
  const Targets& targets = request.targets;
  const CallName name{request.function, "torch"};
  const bool is_one = targets.tensor && !targets.results && targets.outputs.count == 0;
  const Outputs outputs(is_one ? Args() : targets.outputs);
  TorchValue result = call_fortran(own, request.function, request.inputs, same_layout_);
  TensorPtr tensor = tensor_in(result, same_layout_);
  if (is_one && tensor) {
    *targets.tensor = std::move(tensor);
  } else if (tensor) {
    hand_over(answer_of(*tensor, name), name, {same_layout_, false, false}, outputs, targets);
  } else if (targets.tensor || targets.results || targets.outputs.count > 0) {
    fail(FPT_ERR_RESULT_COUNT, name, " gives no result");
  }
}

}  // namespace fpt
