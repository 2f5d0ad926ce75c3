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
  if (libtorch_engine() && torch_side().copy_tensor(tensor, outputs, reading)) return;
  python_side().copy_tensor(tensor, outputs, reading);
}

}  // namespace fpt
