// SPDX-License-Identifier: MIT
/// Functions that torch's libraries export, found by name without linking them: its stable C functions on tensors, the
/// "shim" (torch/csrc/inductor/aoti_torch/c/shim.h), and four C++ functions that have no counterpart there. All of
/// them look and change nothing, in 2 to 4 ns, where Python takes 30 to 50.
///
/// The shim and each of the C++ functions stand for themselves: what is missing in the torch that is there, or does not
/// say in a self-test what it should, is left out, and torch_access asks DLPack or Python in its place.
/// FTN_PYTORCH_SHIM=0 leaves out the shim, FTN_PYTORCH_CPP_FUNCTIONS=0 the others.
#pragma once

#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "arrays/array.hpp"
#include "python/pyref.hpp"

namespace fpt::torch_access {

constexpr const char* torch_library = "libtorch_cpu.so";
constexpr const char* c10_library = "libc10.so";

template <class Function>
bool find_function(Function& function, const char* library, const char* symbol) {
  // torch's libraries are loaded already, in the scope of its extension module
  void* handle = dlopen(library, RTLD_NOW | RTLD_NOLOAD);
  if (!handle) return false;
  function = reinterpret_cast<Function>(dlsym(handle, symbol));
  dlclose(handle);
  return function != nullptr;
}

class TorchSymbols {
 public:
  /// Find and try all. Tensors can be made already, by ways that need none of these.
  static TorchSymbols find();

  bool has_shim() const noexcept { return get_data_ptr_; }
  /// Through the shim: whether data pointer, element type, shape and strides of a tensor are those of `array`.
  bool shows(PyObject* tensor, const Array& array) const;

  bool tells_autograd() const noexcept { return autograd_meta_; }
  /// Whether autograd has attached anything to a tensor: it requires a gradient, did so, or holds one. No operation on
  /// a tensor that stays without gradients does that.
  bool has_autograd(PyObject* tensor) const {
    const void* impl = impl_of(tensor);
    return !impl || autograd_meta_(impl);
  }

  bool tells_version() const noexcept { return version_; }
  /// Number of in-place changes of a tensor; 0 for one of inference mode, which counts none.
  int64_t version(PyObject* tensor) const noexcept {
    try {
      return version_(handle_of(tensor));
    } catch (...) {
      return 0;
    }
  }

  bool tells_negative() const noexcept { return is_neg_; }
  /// Whether the negative bit of a tensor is set.
  bool is_negative(PyObject* tensor) const { return is_neg_(handle_of(tensor)); }

  bool tells_inference_mode() const noexcept { return is_inference_mode_enabled_; }
  bool is_inference_mode() const { return is_inference_mode_enabled_(); }

  int32_t count_of_cpp_functions() const noexcept {
    return int(tells_autograd()) + int(tells_version()) + int(tells_negative()) + int(tells_inference_mode());
  }

  /// Names of the C++ functions that are not used; empty if all are.
  std::string missing() const;

 private:
  void find_shim(PyObject* tensor, PyObject* other);
  void find_cpp_functions(PyObject* tensor, PyObject* other);

  /// An at::Tensor is nothing but the pointer to its TensorImpl, so the address of that pointer in the Python object
  /// serves as the handle of the functions. It is followed anew each time: an implementation that was swapped or
  /// replaced is never read after its death.
  void* handle_of(PyObject* tensor) const noexcept { return reinterpret_cast<char*>(tensor) + impl_offset_; }
  const void* impl_of(PyObject* tensor) const noexcept { return *static_cast<const void* const*>(handle_of(tensor)); }

  int32_t (*get_data_ptr_)(void* tensor, void** result) = nullptr;
  int32_t (*get_dim_)(void* tensor, int64_t* result) = nullptr;
  int32_t (*get_dtype_)(void* tensor, int32_t* result) = nullptr;
  int32_t (*get_sizes_)(void* tensor, int64_t** result) = nullptr;
  int32_t (*get_strides_)(void* tensor, int64_t** result) = nullptr;
  const void* (*autograd_meta_)(const void* impl) = nullptr;
  int64_t (*version_)(const void* tensor) = nullptr;
  bool (*is_neg_)(const void* tensor) = nullptr;
  bool (*is_inference_mode_enabled_)() = nullptr;
  std::size_t impl_offset_ = 0;
};

}  // namespace fpt::torch_access
