// SPDX-License-Identifier: MIT
#include "direct/tensor_copy.hpp"

#include <vector>

#include "arrays/fit.hpp"
#include "calls/python_side.hpp"
#include "direct/direct_answer.hpp"
#include "direct/direct_plugin.hpp"
#include "direct/direct_tensor.hpp"
#include "values/engine.hpp"

namespace fpt {
namespace {

/// False, and nothing is done, for an object of Python alone.
bool copy_by_libtorch(Tensor& tensor, const Outputs& outputs, const ResultOptions& reading) {
  const RawTensor raw = raw_of(tensor);
  if (!raw) return false;
  fpt_arg none = argument_of({});
  const fpt_direct_operand operand{raw.get(), nullptr, tensor.same_layout() != reading.same_layout};
  DirectAnswer answer;
  require_direct(direct_plugin().tensors.call_function("detach", 6, reading.same_layout, &none, &operand, 1, nullptr,
                                                       answer.raw()));
  hand_out(answer, {"copy_to", "a tensor"}, reading, outputs);
  return true;
}

}  // namespace

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
  if (libtorch_engine() && copy_by_libtorch(tensor, outputs, reading)) return;
  python_side().copy_tensor(tensor, outputs, reading);
}

}  // namespace fpt
