// SPDX-License-Identifier: MIT
#include "torch/torch_access.hpp"

#include <atomic>

#include "base/switches.hpp"
#include "python/interpreter.hpp"
#include "python/ownership.hpp"
#include "torch/private_names.hpp"

namespace fpt::torch_access {
namespace {

/// An attribute, and the C function behind it, which spares looking it up; null if it has none.
struct Attribute {
  PyObject* name = nullptr;
  PyGetSetDef* getter = nullptr;

  Ref of(PyObject* tensor) const {
    return Ref(getter ? getter->get(tensor, getter->closure) : PyObject_GetAttr(tensor, name));
  }
};

struct Access {
  PyTypeObject* tensor_type = nullptr;
  PyObject* parameter_type = nullptr;
  const dlpack::ExchangeApi* api = nullptr;  // null before torch 2.10
  PyObject* is_neg = nullptr;
  PyObject* is_conj = nullptr;
  PyObject *is_inference_mode_enabled = nullptr, *inference_mode = nullptr;  // null where torch has them elsewhere
  Attribute requires_grad, grad;
  const TensorLooks* looks = nullptr;  // null without the extension
};

const dlpack::ExchangeApi* find_exchange_api(PyObject* tensor_type) {
  const Ref capsule(PyObject_GetAttrString(tensor_type, "__dlpack_c_exchange_api__"));
  void* pointer = capsule ? PyCapsule_GetPointer(capsule.get(), "dlpack_exchange_api") : nullptr;
  PyErr_Clear();
  auto* api = static_cast<const dlpack::ExchangeApi*>(pointer);
  while (api && api->header.version.major != 1) api = api->header.previous;
  return api && api->to_py_object && api->view ? api : nullptr;
}

/// Truth of an attribute or of a method without arguments; false where asking fails.
bool is_true(const Ref& value) {
  const bool result = value && PyObject_IsTrue(value.get()) == 1;
  PyErr_Clear();
  return result;
}

Attribute find_attribute(PyObject* type, const char* name) {
  const Ref descriptor(PyObject_GetAttrString(type, name));
  PyErr_Clear();
  const bool found = descriptor && Py_IS_TYPE(descriptor.get(), &PyGetSetDescr_Type);
  return {PyUnicode_InternFromString(name),  // the getter lives with its type
          found ? reinterpret_cast<PyGetSetDescrObject*>(descriptor.get())->d_getset : nullptr};
}

Access* access_made = nullptr;
std::atomic<const TensorLooks*> known_looks{nullptr};

/// Those of the extension that is built for this torch; FTN_PYTORCH_CPP_FUNCTIONS=0 leaves it out.
const TensorLooks* find_looks() {
  static bool is_looked_for = is_switched_off("FTN_PYTORCH_CPP_FUNCTIONS");
  if (!is_looked_for) {
    const Ref capsule(PyObject_CallNoArgs(embed("tensor_looks")));
    const bool is_there = capsule && capsule.get() != Py_None;
    void* found = is_there ? PyCapsule_GetPointer(capsule.get(), tensor_looks_capsule) : nullptr;
    PyErr_Clear();
    known_looks.store(static_cast<const TensorLooks*>(found), std::memory_order_release);
    is_looked_for = true;  // now: another thread may have run Python meanwhile, and has found the same
  }
  return known_looks.load(std::memory_order_acquire);
}

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
  loaded->is_neg = checked(PyObject_GetAttrString(type, "is_neg"), context).release();
  loaded->is_conj = checked(PyObject_GetAttrString(type, "is_conj"), context).release();
  loaded->is_inference_mode_enabled = PyObject_GetAttrString(torch.get(), "is_inference_mode_enabled");
  loaded->inference_mode = PyObject_GetAttrString(torch_c.get(), private_names::inference_mode);
  PyErr_Clear();
  loaded->requires_grad = find_attribute(type, "requires_grad");
  loaded->grad = find_attribute(type, "grad");
  loaded->looks = find_looks();
  return *(access_made = loaded);
}

/// FPT_ERR_VERSION for a torch before 2.10.
const dlpack::ExchangeApi& api_of(const Access& access) {
  if (access.api) return *access.api;
  const Ref torch(PyImport_ImportModule("torch"));
  const Ref version(torch ? PyObject_GetAttrString(torch.get(), "__version__") : nullptr);
  const Ref name(version ? PyObject_Str(version.get()) : nullptr);
  const char* text = name ? PyUnicode_AsUTF8(name.get()) : nullptr;
  PyErr_Clear();
  fail(FPT_ERR_VERSION, "torch ", text ? text : "of unknown version",
       " has no exchange API of DLPack, through which arrays become tensors: install torch 2.10 or newer");
}

/// Keeps inference mode off while it lives. A script may call back into the library from inside torch.inference_mode(),
/// or leave it on for good, and tensors made there cannot be saved for backward, which the next call may want to do
/// with a cached one.
Ref without_inference_mode(const Access& access) {
  if (!access.is_inference_mode_enabled || !access.inference_mode) return Ref();
  const bool is_on = access.looks ? access.looks->is_inference_mode()
                                  : is_true(Ref(PyObject_CallNoArgs(access.is_inference_mode_enabled)));
  if (!is_on) return Ref();
  return checked(PyObject_CallOneArg(access.inference_mode, Py_False), "leaving inference mode");
}

bool has_autograd(const Access& access, PyObject* tensor) {
  const Ref wanted = access.requires_grad.of(tensor), gradient = access.grad.of(tensor);
  if (!wanted || !gradient) PyErr_Clear();
  return wanted.get() != Py_False || gradient.get() != Py_None;  // a tensor that does not say counts as changed
}

bool view_is_unchanged(const dlpack::ExchangeApi& api, PyObject* tensor, const Array& array) {
  dlpack::Tensor view;
  if (api.view(tensor, &view) != 0) return PyErr_Clear(), false;
  return view.ndim == array.rank && view.dtype == dlpack::data_type(array.dtype) &&
         dlpack::has_axes(array, view.shape, view.strides) && (view.data == array.data || element_count(array) == 0);
}

}  // namespace

bool is_tensor(PyObject* object) { return PyObject_TypeCheck(object, instance().tensor_type); }

bool is_plain_tensor(PyObject* object) {
  const Access& access = instance();
  PyTypeObject* type = Py_TYPE(object);
  return type == access.tensor_type || reinterpret_cast<PyObject*>(type) == access.parameter_type;
}

bool view_plain(PyObject* object, Array& array) {
  const Access& access = instance();
  if (!is_plain_tensor(object) || !access.api) return false;
  dlpack::Tensor view;
  if (access.api->view(object, &view) != 0) return PyErr_Clear(), false;
  if (!view.device.is_host() && !view.device.is_cuda()) return false;
  array = dlpack::array_of(view);
  if (is_complex(array.dtype) && is_true(Ref(PyObject_CallOneArg(access.is_conj, object)))) return false;
  if (!array.data && element_count(array) > 0) return false;
  return !(access.looks ? access.looks->is_negative(object) : is_true(Ref(PyObject_CallOneArg(access.is_neg, object))));
}

Ref import_slot(dlpack::Slot* slot) {
  const Access& access = instance();
  const uint64_t serial = slot->serial;
  void* object = nullptr;
  try {
    const dlpack::ExchangeApi& api = api_of(access);
    const Ref normal_mode = without_inference_mode(access);
    if (api.to_py_object(&slot->versioned, &object) == 0) return Ref(static_cast<PyObject*>(object));
    throw_python_error("torch refused an array");
  } catch (...) {
    // a failure of torch comes before or after it has taken the slot over, which it then has let go
    if (slot->serial == serial && slot->alive.load(std::memory_order_acquire)) dlpack::drop_slot(slot);
    throw;
  }
}

Array view(PyObject* tensor, Ref& keep) {
  dlpack::Tensor result;
  if (api_of(instance()).view(tensor, &result) != 0) throw_python_error("looking at the memory of a tensor");
  keep = Ref::borrow(tensor);
  return dlpack::array_of(result);
}

bool is_unchanged(PyObject* tensor, const Array& array) {
  const Access& access = *access_made;  // there is a tensor, so torch has been accessed
  if (!Py_IS_TYPE(tensor, access.tensor_type) || has_attributes(tensor)) return false;
  if (!access.looks)
    return !has_autograd(access, tensor) && access.api && view_is_unchanged(*access.api, tensor, array);
  TensorLook now;
  return access.looks->look(tensor, now) && !now.has_autograd && now.rank == array.rank &&
         now.type == dtype_facts(array.dtype).torch_scalar_type && dlpack::has_axes(array, now.sizes, now.strides) &&
         (now.data == array.data || element_count(array) == 0);
}

int64_t version(PyObject* tensor) {
  const Access& access = *access_made;  // as above
  if (access.looks) return access.looks->version(tensor);
  const Ref version(PyObject_GetAttrString(tensor, "_version"));
  if (!version) return PyErr_Clear(), 0;
  return PyLong_AsLongLong(version.get());
}

int first_changed(PyObject* const* tensors, const fpt_arg* const* watched, int count) {
  for (int i = 0; i < count; ++i)
    if (watched[i] && version(tensors[i]) != 0) return i;
  return -1;
}

bool current_stream(Device device, void*& stream) {
  const Access& access = instance();
  if (!access.api || !access.api->current_stream) return false;
  return access.api->current_stream(device.type, device.index, &stream) == 0 || (PyErr_Clear(), false);
}

bool tells_version_at_once() noexcept { return access_made && access_made->looks; }

void find_modes() { find_looks(); }

bool read_modes(TorchModes& modes) noexcept {
  const TensorLooks* looks = known_looks.load(std::memory_order_acquire);
  if (looks) modes = looks->modes();
  return looks != nullptr;
}

std::string describe() {
  const Access& access = instance();
  if (!access.api) return "no exchange API";
  return access.looks ? "exchange API, functions of the extension" : "exchange API";
}

}  // namespace fpt::torch_access
