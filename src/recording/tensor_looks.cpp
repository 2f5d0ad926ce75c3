// SPDX-License-Identifier: MIT
#include "base/tensor_looks.hpp"

#include <ATen/autocast_mode.h>

#include "recording/tensor_looks.hpp"
#include "recording/torch.hpp"

namespace fpt::recording {
namespace {

const at::Tensor& tensor_in(void* object) { return THPVariable_Unpack(static_cast<PyObject*>(object)); }

bool look(void* object, TensorLook& found) noexcept {
  try {
    const at::Tensor& tensor = tensor_in(object);
    if (!tensor.defined()) return false;
    found = {tensor.const_data_ptr(),
             tensor.sizes().data(),
             tensor.strides().data(),
             tensor.dim(),
             static_cast<int8_t>(tensor.scalar_type()),
             tensor.unsafeGetTensorImpl()->autograd_meta() != nullptr};
    return true;
  } catch (...) {  // such as a fake one
    return false;
  }
}

int64_t version(void* object) noexcept {
  const at::Tensor& tensor = tensor_in(object);
  return !tensor.defined() || tensor.is_inference() ? 0 : static_cast<int64_t>(tensor._version());
}

bool is_negative(void* object) noexcept { return tensor_in(object).is_neg(); }

bool is_inference_mode() noexcept { return c10::InferenceMode::is_enabled(); }

TorchModes modes() noexcept {
  return {at::GradMode::is_enabled(),
          c10::InferenceMode::is_enabled(),
          at::autocast::is_autocast_enabled(at::kCPU),
          at::autocast::is_autocast_enabled(at::kCUDA),
          at::globalContext().deterministicAlgorithms(),
          static_cast<int8_t>(c10::get_default_dtype_as_scalartype()),
          at::impl::PythonTorchFunctionTLS::stack_len()};
}

constexpr TensorLooks looks{look, version, is_negative, is_inference_mode, modes};

}  // namespace

void add_tensor_looks(pybind11::module_& module) {
  module.attr("tensor_looks") = pybind11::capsule(&looks, tensor_looks_capsule);
}

}  // namespace fpt::recording
