// SPDX-License-Identifier: MIT
#include "calls/tensor_copy.hpp"

#include <vector>

#include "arrays/fit.hpp"
#include "calls/python_side.hpp"
#include "direct/direct_engine.hpp"
#include "direct/direct_functions.hpp"

namespace fpt {

void copy_tensor(Tensor& tensor, const fpt_arg& output, bool cast) {
  fpt_arg described = output;
  const Outputs outputs({&described, 1});
  const ResultOptions reading{tensor.same_layout(), cast, /*brings_to_host=*/true};
  if ((tensor.is_plain_memory() || direct_engine()) && outputs.device().is_host()) {
    const Array array = tensor.array();
    if (array.device.is_host() && !is_half(array.dtype)) {
      std::vector<CheckedCopy> copies;
      copies.push_back(fit_array(tensor.same_layout() ? array : reversed(array), "Tensor", outputs.get()[0],
                                 tensor.same_layout(), cast, "the tensor"));
      return run_all(copies);
    }
  }
  if (direct_engine() && copy_directly(tensor, outputs, reading)) return;
  python_side().copy_tensor(tensor, outputs, reading);
}

}  // namespace fpt
