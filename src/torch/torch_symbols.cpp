// SPDX-License-Identifier: MIT
#include "torch/torch_symbols.hpp"

#include <cstring>

#include "base/switches.hpp"
#include "torch/dlpack.hpp"
#include "torch/private_names.hpp"
#include "torch/torch_access.hpp"

namespace fpt::torch_access {
namespace {

/// Position of the pointer to the TensorImpl in a tensor's Python object, found by comparing with what torch says; 0 if
/// it cannot be told.
std::size_t find_impl_offset(PyObject* tensor) {
  const Ref address(PyObject_GetAttrString(tensor, private_names::implementation));
  const void* impl = address ? PyLong_AsVoidPtr(address.get()) : nullptr;
  PyErr_Clear();
  const auto size = static_cast<std::size_t>(Py_TYPE(tensor)->tp_basicsize);
  for (std::size_t offset = sizeof(PyObject); impl && offset + sizeof impl <= size; offset += sizeof impl)
    if (std::memcmp(reinterpret_cast<char*>(tensor) + offset, &impl, sizeof impl) == 0) return offset;
  return 0;
}

/// An array of 2 x 3 numbers in single precision with a gap after each row. Its memory lives as long as the process.
Array self_test_array() {
  static float numbers[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  Array array;
  array.data = numbers;
  array.dtype = FPT_FLOAT32;
  array.rank = 2;
  array.extents[0] = 2;
  array.extents[1] = 3;
  array.strides[0] = 4 * sizeof *numbers;
  array.strides[1] = sizeof *numbers;
  return array;
}

bool is_done(const Ref& result) {
  PyErr_Clear();
  return bool(result);
}

/// Inside of inference mode, and outside of it.
bool follows_inference_mode(bool (*is_enabled)()) {
  const Ref torch(PyImport_ImportModule("torch")), torch_c(PyImport_ImportModule("torch._C"));
  const Ref enabled(torch ? PyObject_CallMethod(torch.get(), "is_inference_mode_enabled", nullptr) : nullptr);
  const bool now = enabled.get() == Py_True;
  if (!enabled || !torch_c || is_enabled() != now) return PyErr_Clear(), false;
  const Ref opposite(PyObject_CallMethod(torch_c.get(), private_names::inference_mode, "O", now ? Py_False : Py_True));
  return is_done(opposite) && is_enabled() != now;  // ends with the object
}

}  // namespace

bool TorchSymbols::shows(PyObject* tensor, const Array& array) const {
  void* handle = handle_of(tensor);
  void* data;
  int64_t rank;
  int32_t type;
  if (!impl_of(tensor) || get_data_ptr_(handle, &data) != 0 || get_dim_(handle, &rank) != 0 ||
      get_dtype_(handle, &type) != 0 || rank != array.rank || type != dtype_facts(array.dtype).torch_scalar_type)
    return false;
  int64_t *sizes, *strides;
  if (get_sizes_(handle, &sizes) != 0 || get_strides_(handle, &strides) != 0) return false;
  return dlpack::has_axes(array, sizes, strides) && (data == array.data || element_count(array) == 0);
}

void TorchSymbols::find_shim(PyObject* tensor, PyObject* other) {
  const Array array = self_test_array();
  const auto finds = [this] {
    return find_function(get_dim_, torch_library, "aoti_torch_get_dim") &&
           find_function(get_dtype_, torch_library, "aoti_torch_get_dtype") &&
           find_function(get_sizes_, torch_library, "aoti_torch_get_sizes") &&
           find_function(get_strides_, torch_library, "aoti_torch_get_strides") &&
           find_function(get_data_ptr_, torch_library, "aoti_torch_get_data_ptr");
  };
  const auto transposes = [&] { return is_done(Ref(PyObject_CallMethod(other, "t_", nullptr))); };
  const auto is_right = [&] {
    Array narrow = array;
    narrow.extents[1] = 2;
    if (!shows(tensor, array) || shows(tensor, narrow) || !shows(other, array)) return false;
    if (!transposes() || !shows(other, reversed(array)) || shows(other, array)) return false;
    return transposes() && shows(other, array) && !shows(other, reversed(array));
  };
  if (!finds() || !is_right()) get_data_ptr_ = nullptr;
}

void TorchSymbols::find_cpp_functions(PyObject* tensor, PyObject* other) {
  const auto wants = [&](PyObject* gradient) {
    return is_done(Ref(PyObject_CallMethod(other, "requires_grad_", "O", gradient)));
  };
  const auto shows_that = [&] { return !has_autograd(tensor) && has_autograd(other); };
  if (!find_function(autograd_meta_, c10_library, private_names::autograd_meta) || has_autograd(tensor) ||
      has_autograd(other) || !wants(Py_True) || !shows_that() || !wants(Py_False) || !shows_that())
    autograd_meta_ = nullptr;
  const auto changes = [&] { return is_done(Ref(PyObject_CallMethod(tensor, "zero_", nullptr))); };
  if (!find_function(version_, torch_library, private_names::version) || version(tensor) != 0 || !changes() ||
      version(tensor) != 1)
    version_ = nullptr;
  const Ref torch(PyImport_ImportModule("torch"));
  const Ref negated(torch ? PyObject_CallMethod(torch.get(), private_names::negative_view, "O", tensor) : nullptr);
  if (!is_done(negated) || !find_function(is_neg_, torch_library, private_names::is_negative) || is_negative(tensor) ||
      !is_negative(negated.get()))
    is_neg_ = nullptr;
  if (!find_function(is_inference_mode_enabled_, c10_library, private_names::is_inference_mode) ||
      !follows_inference_mode(is_inference_mode_enabled_))
    is_inference_mode_enabled_ = nullptr;
}

TorchSymbols TorchSymbols::find() {
  const Ref tensor = import_slot(dlpack::take_slot(self_test_array(), nullptr));
  const Ref other = import_slot(dlpack::take_slot(self_test_array(), nullptr));
  TorchSymbols found;
  found.impl_offset_ = find_impl_offset(tensor.get());
  if (found.impl_offset_ == 0 || find_impl_offset(other.get()) != found.impl_offset_) return {};
  if (!is_switched_off("FTN_PYTORCH_SHIM")) found.find_shim(tensor.get(), other.get());
  if (!is_switched_off("FTN_PYTORCH_CPP_FUNCTIONS")) found.find_cpp_functions(tensor.get(), other.get());
  return found;
}

std::string TorchSymbols::missing() const {
  std::string names;
  const auto add = [&names](bool is_there, const char* name) {
    if (!is_there) names.append(names.empty() ? "" : ", ").append(name);
  };
  add(tells_autograd(), private_names::autograd_meta);
  add(tells_version(), private_names::version);
  add(tells_negative(), private_names::is_negative);
  add(tells_inference_mode(), private_names::is_inference_mode);
  return names;
}

}  // namespace fpt::torch_access
