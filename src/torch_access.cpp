// SPDX-License-Identifier: MIT
#include "torch_access.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <cstring>

#include "image_self_test.hpp"
#include "interpreter.hpp"
#include "tensor_image.hpp"

namespace fpt::torch_access {
namespace {

/// torch's stable C functions on at::Tensor* (torch/csrc/inductor/aoti_torch/c/shim.h; 2 to 4 ns each, where the Python
/// getters take 30), and three C++ functions that it lacks and the libraries export. All of them look and change nothing.
struct Shim {
  int32_t (*get_data_ptr)(void* tensor, void** result) = nullptr;
  int32_t (*get_dim)(void* tensor, int64_t* result) = nullptr;
  int32_t (*get_dtype)(void* tensor, int32_t* result) = nullptr;
  int32_t (*get_sizes)(void* tensor, int64_t** result) = nullptr;
  int32_t (*get_strides)(void* tensor, int64_t** result) = nullptr;
  bool (*requires_grad)(const void* impl) = nullptr;
  bool (*is_neg)(const void* tensor) = nullptr;
  bool (*is_inference_mode_enabled)() = nullptr;
  /// Where in the Python object the pointer to the TensorImpl stands. An at::Tensor is nothing but that pointer, so
  /// its address serves as the handle of the functions above, and it is followed anew in each check: a swapped or
  /// replaced implementation is never read after its death.
  std::size_t impl_offset = 0;
};

struct Access {
  PyTypeObject* tensor_type = nullptr;
  PyObject* parameter_type = nullptr;
  const dlpack::ExchangeApi* api = nullptr;
  PyObject* from_dlpack = nullptr;  // private, but 40 % faster than the public function; the public one where missing
  PyObject* is_neg = nullptr;
  PyObject* is_conj = nullptr;
  PyObject *is_inference_mode_enabled = nullptr, *inference_mode = nullptr;  // null where torch has them elsewhere
  PyObject *requires_grad = nullptr, *data_ptr = nullptr, *shape = nullptr, *stride = nullptr;  // names
  PyObject* dtype = nullptr;                         // name
  PyObject* dtypes[FPT_COMPLEX128 + 1] = {};
  PyGetSetDef* requires_grad_getter = nullptr;  // the attribute without looking it up
  bool has_shim = false;
  bool has_images = false;
  Shim shim;
};

bool switched_off(const char* name) {
  const char* value = std::getenv(name);
  return value && std::strcmp(value, "0") == 0;
}

const dlpack::ExchangeApi* find_exchange_api(PyObject* tensor_type) {
  if (switched_off("FTN_PYTORCH_EXCHANGE_API")) return nullptr;
  const Ref capsule(PyObject_GetAttrString(tensor_type, "__dlpack_c_exchange_api__"));
  void* pointer = capsule ? PyCapsule_GetPointer(capsule.get(), "dlpack_exchange_api") : nullptr;
  PyErr_Clear();
  auto* api = static_cast<const dlpack::ExchangeApi*>(pointer);
  while (api && api->header.version.major != 1) api = api->header.previous;
  return api && api->to_py_object && api->view ? api : nullptr;
}

void* find_in(const char* library, const char* symbol) {
  // torch's libraries are loaded already, in the scope of its extension module
  void* handle = dlopen(library, RTLD_NOW | RTLD_NOLOAD);
  if (!handle) return nullptr;
  void* address = dlsym(handle, symbol);
  dlclose(handle);
  return address;
}

template <class Function>
bool find_function(Function& function, const char* library, const char* symbol) {
  function = reinterpret_cast<Function>(find_in(library, symbol));
  return function != nullptr;
}

/// Position of the TensorImpl pointer in a tensor's Python object, found by comparing with what torch says; 0 if it
/// cannot be told.
std::size_t find_impl_offset(PyObject* torch_c, PyObject* tensor) {
  constexpr std::size_t words = 6;
  void* deleter = find_in("libtorch_cpu.so", "aoti_torch_delete_tensor_object");
  const Ref aoti(PyObject_GetAttrString(torch_c, "_aoti"));
  const Ref capsule(aoti ? PyObject_CallMethod(aoti.get(), "unsafe_alloc_void_ptr_from_tensor", "O", tensor) : nullptr);
  if (!deleter || !capsule || !PyCapsule_CheckExact(capsule.get())) return PyErr_Clear(), 0;
  void* handle = PyCapsule_GetPointer(capsule.get(), PyCapsule_GetName(capsule.get()));
  void* impl;
  std::memcpy(&impl, handle, sizeof impl);
  reinterpret_cast<int32_t (*)(void*)>(deleter)(handle);
  std::size_t offset = 0;
  const auto size = static_cast<std::size_t>(Py_TYPE(tensor)->tp_basicsize);
  for (std::size_t word = sizeof(PyObject) / sizeof(void*); word < words && (word + 1) * sizeof(void*) <= size; ++word) {
    void* candidate;
    std::memcpy(&candidate, reinterpret_cast<char*>(tensor) + word * sizeof(void*), sizeof candidate);
    if (candidate == impl && offset == 0) offset = word * sizeof(void*);
  }
  return offset;
}

void* tensor_handle(const Shim& shim, PyObject* tensor) { return reinterpret_cast<char*>(tensor) + shim.impl_offset; }

/// c10::ScalarType, part of torch's stable C interface.
int32_t scalar_type(int32_t dtype) noexcept {
  constexpr int32_t types[] = {-1, 11, 1, 2, 3, 4, 6, 7, 9, 10};
  return dtype >= FPT_BOOL && dtype <= FPT_COMPLEX128 ? types[dtype] : -1;
}

/// Strides in elements; that of a single element may be anything.
bool has_axes(const Array& array, const int64_t* sizes, const int64_t* strides) noexcept {
  const int64_t size = static_cast<int64_t>(dtype_size(array.dtype));
  for (int i = 0; i < array.rank; ++i)
    if (sizes[i] != array.extents[i] || (sizes[i] > 1 && strides[i] * size != array.strides[i])) return false;
  return true;
}

bool shim_is_unchanged(const Shim& shim, PyObject* tensor, const Array& array) {
  void* handle = tensor_handle(shim, tensor);
  void* impl;
  std::memcpy(&impl, handle, sizeof impl);
  void* data;
  int64_t rank;
  int32_t type;
  if (!impl || shim.get_data_ptr(handle, &data) != 0 || shim.get_dim(handle, &rank) != 0 ||
      shim.get_dtype(handle, &type) != 0 || rank != array.rank || type != scalar_type(array.dtype))
    return false;
  int64_t *sizes, *strides;
  if (shim.get_sizes(handle, &sizes) != 0 || shim.get_strides(handle, &strides) != 0) return false;
  return has_axes(array, sizes, strides) && (data == array.data || element_count(array) == 0) &&
         !shim.requires_grad(impl);
}

/// Truth of an attribute or of a method without arguments; false where asking fails.
bool is_true(Ref value) {
  const bool result = value && PyObject_IsTrue(value.get()) == 1;
  PyErr_Clear();
  return result;
}

bool shows_inference_mode(const Shim& shim, const Access& access) {
  if (!access.is_inference_mode_enabled || !access.inference_mode) return false;
  const bool now = is_true(Ref(PyObject_CallNoArgs(access.is_inference_mode_enabled)));
  if (shim.is_inference_mode_enabled() != now) return false;
  const Ref opposite(PyObject_CallOneArg(access.inference_mode, now ? Py_False : Py_True));  // until we return
  if (!opposite) return PyErr_Clear(), false;
  return shim.is_inference_mode_enabled() != now;
}

bool find_shim(PyObject* torch_c, Access& access) {
  if (switched_off("FTN_PYTORCH_SHIM")) return false;
  Shim& shim = access.shim;
  const char* torch = "libtorch_cpu.so";
  if (!find_function(shim.get_data_ptr, torch, "aoti_torch_get_data_ptr") ||
      !find_function(shim.get_dim, torch, "aoti_torch_get_dim") ||
      !find_function(shim.get_dtype, torch, "aoti_torch_get_dtype") ||
      !find_function(shim.get_sizes, torch, "aoti_torch_get_sizes") ||
      !find_function(shim.get_strides, torch, "aoti_torch_get_strides") ||
      !find_function(shim.requires_grad, "libc10.so", "_ZNK3c1010TensorImpl13requires_gradEv") ||
      !find_function(shim.is_neg, torch, "_ZN2at6native6is_negERKNS_6TensorE") ||
      !find_function(shim.is_inference_mode_enabled, "libc10.so", "_ZN3c1013InferenceMode10is_enabledEv"))
    return false;
  const Array array = self_test_array();
  const Ref one = import_slot(dlpack::take_slot(array, nullptr));
  const Ref two = import_slot(dlpack::take_slot(array, nullptr));
  shim.impl_offset = find_impl_offset(torch_c, one.get());
  if (shim.impl_offset == 0 || find_impl_offset(torch_c, two.get()) != shim.impl_offset) return false;
  if (!shows_inference_mode(shim, access)) return false;
  const Ref module(PyImport_ImportModule("torch"));
  const Ref negated(module ? PyObject_CallMethod(module.get(), "_neg_view", "O", one.get()) : nullptr);
  PyErr_Clear();
  if (!negated || !shim.is_neg(tensor_handle(shim, negated.get())) || shim.is_neg(tensor_handle(shim, one.get())))
    return false;
  Array other = array;
  other.extents[1] = 2;
  if (!shim_is_unchanged(shim, one.get(), array) || shim_is_unchanged(shim, one.get(), other)) return false;
  const Ref transposed(PyObject_CallMethod(two.get(), "t_", nullptr));
  if (!transposed || !shim_is_unchanged(shim, two.get(), reversed(array))) return PyErr_Clear(), false;
  const Ref back(PyObject_CallMethod(two.get(), "t_", nullptr));
  if (!back || shim_is_unchanged(shim, two.get(), reversed(array))) return PyErr_Clear(), false;
  if (PyObject_SetAttr(one.get(), access.requires_grad, Py_True) != 0) return PyErr_Clear(), false;
  return !shim_is_unchanged(shim, one.get(), array) && shim_is_unchanged(shim, two.get(), array);
}

/// The C function behind an attribute, null if it is no such attribute.
PyGetSetDef* find_getter(PyObject* type, const char* name) {
  const Ref descriptor(PyObject_GetAttrString(type, name));
  PyErr_Clear();
  const bool found = descriptor && Py_IS_TYPE(descriptor.get(), &PyGetSetDescr_Type);
  return found ? reinterpret_cast<PyGetSetDescrObject*>(descriptor.get())->d_getset : nullptr;  // lives with its type
}

Access* access_made = nullptr;

Access& instance() {
  if (access_made) return *access_made;
  const std::string context = "torch was imported but cannot be used";
  const Ref torch = checked(PyImport_ImportModule("torch"), context);
  const Ref torch_c = checked(PyObject_GetAttrString(torch.get(), "_C"), context);
  const Ref nn = checked(PyImport_ImportModule("torch.nn"), context);
  auto* loaded = new Access;
  PyObject* type = checked(PyObject_GetAttrString(torch.get(), "Tensor"), context).release();
  loaded->tensor_type = reinterpret_cast<PyTypeObject*>(type);
  loaded->parameter_type = checked(PyObject_GetAttrString(nn.get(), "Parameter"), context).release();
  loaded->api = find_exchange_api(type);
  loaded->from_dlpack = PyObject_GetAttrString(torch_c.get(), "_from_dlpack");
  if (!loaded->from_dlpack) {
    PyErr_Clear();
    loaded->from_dlpack = checked(PyObject_GetAttrString(torch.get(), "from_dlpack"), context).release();
  }
  loaded->is_neg = checked(PyObject_GetAttrString(type, "is_neg"), context).release();
  loaded->is_conj = checked(PyObject_GetAttrString(type, "is_conj"), context).release();
  loaded->is_inference_mode_enabled = PyObject_GetAttrString(torch.get(), "is_inference_mode_enabled");
  loaded->inference_mode = PyObject_GetAttrString(torch_c.get(), "_InferenceMode");
  PyErr_Clear();
  loaded->requires_grad = PyUnicode_InternFromString("requires_grad");
  loaded->dtype = PyUnicode_InternFromString("dtype");
  for (int32_t i = FPT_BOOL; i <= FPT_COMPLEX128; ++i)
    loaded->dtypes[i] = checked(PyObject_GetAttrString(torch.get(), dtype_name(i)), context).release();
  loaded->requires_grad_getter = find_getter(type, "requires_grad");
  loaded->data_ptr = PyUnicode_InternFromString("data_ptr");
  loaded->shape = PyUnicode_InternFromString("shape");
  loaded->stride = PyUnicode_InternFromString("stride");
  access_made = loaded;  // the self-test makes tensors, for which everything above is needed
  loaded->has_shim = find_shim(torch_c.get(), *loaded);
  loaded->has_images = loaded->api && !switched_off("FTN_PYTORCH_IMAGES") && learn_images(*loaded->api);
  return *loaded;
}

/// Keeps inference mode off while it lives. A script may call back into the library from inside torch.inference_mode(),
/// or leave it on for good, and tensors made there cannot be saved for backward, which the next call may want to do with
/// a cached one.
Ref without_inference_mode(const Access& access) {
  if (!access.is_inference_mode_enabled || !access.inference_mode) return Ref();
  if (!(access.has_shim ? access.shim.is_inference_mode_enabled()
                        : is_true(Ref(PyObject_CallNoArgs(access.is_inference_mode_enabled)))))
    return Ref();
  return checked(PyObject_CallOneArg(access.inference_mode, Py_False), "leaving inference mode");
}

bool equals(PyObject* sequence, const int64_t* values, int32_t count, int64_t unit, const int64_t* relevant) {
  if (!sequence || PySequence_Size(sequence) != count) return PyErr_Clear(), false;
  for (int32_t i = 0; i < count; ++i) {
    const Ref item(PySequence_GetItem(sequence, i));
    if (!item) return PyErr_Clear(), false;
    if ((!relevant || relevant[i] > 1) && PyLong_AsLongLong(item.get()) * unit != values[i]) return false;
  }
  return true;
}

bool requires_grad(const Access& access, PyObject* tensor) {
  const PyGetSetDef* getter = access.requires_grad_getter;
  const Ref value(getter ? getter->get(tensor, getter->closure) : PyObject_GetAttr(tensor, access.requires_grad));
  if (!value) PyErr_Clear();
  return value.get() != Py_False;  // a tensor that does not say counts as changed
}

bool getters_say_unchanged(const Access& access, PyObject* tensor, const Array& array) {
  if (requires_grad(access, tensor)) return false;
  if (access.api) {
    dlpack::Tensor view;
    if (access.api->view(tensor, &view) != 0) return PyErr_Clear(), false;
    const dlpack::DataType type = dlpack::data_type(array.dtype);
    if (view.ndim != array.rank || view.dtype.code != type.code || view.dtype.bits != type.bits || view.dtype.lanes != 1)
      return false;
    return has_axes(array, view.shape, view.strides) && (view.data == array.data || element_count(array) == 0);
  }
  const Ref data(PyObject_CallMethodNoArgs(tensor, access.data_ptr));
  const Ref shape(PyObject_GetAttr(tensor, access.shape));
  const Ref stride(PyObject_CallMethodNoArgs(tensor, access.stride));
  const Ref dtype(PyObject_GetAttr(tensor, access.dtype));
  if (!data || !shape || !stride || !dtype) return PyErr_Clear(), false;
  if (array.dtype > FPT_COMPLEX128 || dtype.get() != access.dtypes[array.dtype]) return false;
  return (PyLong_AsVoidPtr(data.get()) == array.data || element_count(array) == 0) &&
         equals(shape.get(), array.extents, array.rank, 1, nullptr) &&
         equals(stride.get(), array.strides, array.rank, static_cast<int64_t>(dtype_size(array.dtype)), array.extents);
}

}  // namespace

bool is_tensor(PyObject* object) { return PyObject_TypeCheck(object, instance().tensor_type); }

[[gnu::hot]]
bool view_plain(PyObject* object, Array& array) {
  const Access& access = instance();
  PyTypeObject* type = Py_TYPE(object);
  if (type != access.tensor_type && reinterpret_cast<PyObject*>(type) != access.parameter_type) return false;
  if (!access.api) return false;
  dlpack::Tensor view;
  if (access.api->view(object, &view) != 0) return PyErr_Clear(), false;
  if (view.device.type != dlpack::device_cpu) return false;
  if (view.dtype.code == dlpack::code_complex && is_true(Ref(PyObject_CallOneArg(access.is_conj, object)))) return false;
  array = dlpack::array_of(view);
  if (!array.data && element_count(array) > 0) return false;
  return !(access.has_shim ? access.shim.is_neg(tensor_handle(access.shim, object))
                           : is_true(Ref(PyObject_CallOneArg(access.is_neg, object))));
}

Ref import_slot(dlpack::Slot* slot) {
  const Access& access = instance();
  const Ref normal_mode = without_inference_mode(access);
  if (access.api) {
    void* object = nullptr;
    if (access.api->to_py_object(&slot->versioned, &object) == 0) return Ref(static_cast<PyObject*>(object));
    throw_python_error("torch refused an array");
  }
  const Ref capsule(PyCapsule_New(slot->as_legacy(), "dltensor", nullptr));
  Ref tensor(capsule ? PyObject_CallOneArg(access.from_dlpack, capsule.get()) : nullptr);
  if (!tensor) {
    if (!capsule || std::strcmp(PyCapsule_GetName(capsule.get()), "dltensor") == 0) dlpack::drop_slot(slot);
    throw_python_error("torch refused an array");
  }
  return tensor;
}

Array view(PyObject* tensor, Ref& keep) {
  const Access& access = instance();
  if (access.api) {
    dlpack::Tensor result;
    if (access.api->view(tensor, &result) != 0) throw_python_error("looking at the memory of a tensor");
    keep = Ref::borrow(tensor);
    return dlpack::array_of(result);
  }
  const Ref detached = checked(PyObject_CallMethod(tensor, "detach", nullptr), "looking at the memory of a tensor");
  // the capsule is not consumed, so it gives its reference to the tensor back when it dies
  keep = checked(PyObject_CallMethod(detached.get(), "__dlpack__", nullptr), "looking at the memory of a tensor");
  auto* managed = static_cast<dlpack::Managed*>(PyCapsule_GetPointer(keep.get(), "dltensor"));
  if (!managed) throw_python_error("looking at the memory of a tensor");
  return dlpack::array_of(managed->tensor);
}

bool is_unchanged(PyObject* tensor, const Array& array) {
  const Access& access = *access_made;  // there is a tensor, so torch has been accessed
  return access.has_shim ? shim_is_unchanged(access.shim, tensor, array) : getters_say_unchanged(access, tensor, array);
}

std::string describe() {
  const Access& access = instance();
  return concat(access.api ? "exchange API" : "capsules", ", ", access.has_shim ? "C shim" : "Python getters",
                access.has_images ? ", images" : "", TensorImage::may_move() ? ", moves" : "");
}

}  // namespace fpt::torch_access
