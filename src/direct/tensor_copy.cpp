// SPDX-License-Identifier: MIT
#include "direct/tensor_copy.hpp"

#include <vector>

#include "arrays/fit.hpp"
#include "calls/python_side.hpp"
#include "direct/torch_side.hpp"
#include "values/engine.hpp"

namespace fpt {

void copy_tensor(Tensor& tensor, const fpt_arg& output, bool cast) {
  fpt_arg described = output;
  const Outputs outputs({&described, 1});
  const ResultOptions reading{tensor.same_layout(), cast, /*brings_to_host=*/true};
  if ((tensor.is_plain_memory() || libtorch_engine()) && outputs.device().is_host()) {
    const Array array = tensor.array();
    if (array.device.is_host() && !is_half(array.dtype)) {
      std::vector<CheckedCopy> copies;
      copies.push_back(fit_array(tensor.same_layout() ? array : reversed(array), "Tensor", outputs.get()[0],
                                 tensor.same_layout(), cast, "the tensor"));
      run_all(copies);
      return outputs.written();
    }
  }
  const CallName call{"copy_to", "a tensor"};
  hand_over(answer_of(tensor, call), call, reading, outputs, {});
}

std::shared_ptr<Answer> answer_of(Tensor& tensor, const CallName& call) {
  std::shared_ptr<Answer> answer = libtorch_engine() ? torch_side().answer_of(tensor, call) : nullptr;
  return answer ? std::move(answer) : python_side().answer_of(tensor, call);
}

}  // namespace fpt
