// SPDX-License-Identifier: MIT
#include "recording/validity.hpp"

#include <bit>

#include "recording/first_place.hpp"
#include "recording/random_runs.hpp"

namespace fpt::recording {
namespace {

enum Container : int { tuple_of, list_of, dict_of };

/// Hand containers and leaves to a visitor; false as soon as that says so.
template <class Visitor>
bool walk(PyObject* object, Visitor& visitor) {
  if (PyTuple_CheckExact(object) || PyList_CheckExact(object)) {
    const Py_ssize_t size = PySequence_Fast_GET_SIZE(object);
    if (!visitor.container(PyTuple_CheckExact(object) ? tuple_of : list_of, size)) return false;
    for (Py_ssize_t i = 0; i < size; ++i)
      if (!walk(PySequence_Fast_GET_ITEM(object, i), visitor)) return false;
    return true;
  }
  if (PyDict_CheckExact(object)) {
    if (!visitor.container(dict_of, PyDict_GET_SIZE(object))) return false;
    PyObject *key, *value;
    for (Py_ssize_t place = 0; PyDict_Next(object, &place, &key, &value);)
      if (!visitor.key(key) || !walk(value, visitor)) return false;
    return true;
  }
  return visitor.leaf(object);
}

bool is_plain_value(PyObject* object) {
  return PyFloat_CheckExact(object) || PyLong_CheckExact(object) || PyUnicode_CheckExact(object) ||
         PyBytes_CheckExact(object) || PyComplex_CheckExact(object);
}

bool is_same_value(PyObject* one, PyObject* other) noexcept {
  if (one == other || Py_TYPE(one) != Py_TYPE(other) || !is_plain_value(one)) return one == other;
  const auto same = [](double a, double b) { return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b); };
  if (PyFloat_CheckExact(one)) return same(PyFloat_AS_DOUBLE(one), PyFloat_AS_DOUBLE(other));
  if (PyComplex_CheckExact(one))  // 0 and -0 differ, and not a number is the same as itself
    return same(PyComplex_RealAsDouble(one), PyComplex_RealAsDouble(other)) &&
           same(PyComplex_ImagAsDouble(one), PyComplex_ImagAsDouble(other));
  return PyObject_RichCompareBool(one, other, Py_EQ) == 1;  // which cannot fail for these types
}

bool has_attributes(PyObject* object) noexcept {
  const auto fields = py::reinterpret_steal<py::object>(PyObject_GenericGetDict(object, nullptr));
  return fields ? PyDict_GET_SIZE(fields.ptr()) > 0 : (PyErr_Clear(), false);
}

}  // namespace

struct Signature::Learning {
  Signature& made;
  std::vector<PyObject*> objects{};  ///< the leaves so far

  bool container(int kind, Py_ssize_t size) { return made.containers_.emplace_back(kind, size), true; }
  bool key(PyObject* key) { return made.keys_.push_back(py::reinterpret_borrow<py::object>(key)), true; }
  bool leaf(PyObject* object) {
    Leaf leaf;
    leaf.same_as = first_place(object, made.named_, objects);
    objects.push_back(object);
    if (THPVariable_Check(object)) {
      const at::Tensor& tensor = THPVariable_Unpack(object);
      object = reinterpret_cast<PyObject*>(Py_TYPE(object));
      leaf.sizes.assign(tensor.sizes().begin(), tensor.sizes().end());
      leaf.strides.assign(tensor.strides().begin(), tensor.strides().end());
      leaf.type = tensor.scalar_type();
      leaf.device = tensor.device();
      leaf.requires_grad = tensor.requires_grad();
      leaf.is_inference = tensor.is_inference();
    }
    leaf.value = py::reinterpret_borrow<py::object>(object);
    return made.leaves_.push_back(std::move(leaf)), true;
  }
};

struct Signature::Matching {
  const Signature& known;
  std::vector<at::Tensor>& tensors;
  std::size_t containers = 0, keys = 0, leaves = 0;
  c10::SmallVector<PyObject*, 24> objects;

  bool container(int kind, Py_ssize_t size) {
    return containers < known.containers_.size() && known.containers_[containers++] == std::pair(kind, size);
  }
  bool key(PyObject* key) { return keys < known.keys_.size() && is_same_value(known.keys_[keys++].ptr(), key); }
  bool leaf(PyObject* object) {
    if (leaves >= known.leaves_.size()) return false;
    const Leaf& leaf = known.leaves_[leaves];
    objects.push_back(object);
    if (leaf.type == c10::ScalarType::Undefined) return ++leaves, is_same_value(leaf.value.ptr(), object);
    if (reinterpret_cast<PyObject*>(Py_TYPE(object)) != leaf.value.ptr()) return false;
    const at::Tensor& tensor = THPVariable_Unpack(object);
    if (tensor.layout() != at::kStrided || tensor.scalar_type() != leaf.type ||
        tensor.sizes() != at::IntArrayRef(leaf.sizes) || tensor.strides() != at::IntArrayRef(leaf.strides) ||
        tensor.device() != leaf.device || tensor.requires_grad() != leaf.requires_grad ||
        tensor.is_inference() != leaf.is_inference || tensor.is_conj() || tensor.is_neg() ||
        (known.is_bare_ && has_attributes(object)))
      return false;
    if (first_place(object, known.named_, objects) != leaf.same_as) return false;
    return tensors.push_back(tensor), ++leaves, true;
  }
};

Signature::Signature(const py::tuple& args, const py::dict& named, bool is_bare, const py::list& memory)
    : is_bare_(is_bare) {
  for (const auto& each : memory) named_.push_back(PyTuple_GET_ITEM(each.ptr(), 0));
  Learning learning{*this};
  walk(args.ptr(), learning);
  walk(named.ptr(), learning);
}

bool Signature::matches(PyObject* args, PyObject* named, std::vector<at::Tensor>& tensors) const {
  Matching matching{*this, tensors, 0, 0, 0, {}};
  return walk(args, matching) && walk(named, matching) && matching.leaves == leaves_.size();
}

namespace {

/// Borrowed, or null; nothing is raised.
PyObject* item_of(PyObject* dict, PyObject* key) noexcept {
  PyObject* found = PyDict_GetItemWithError(dict, key);
  if (!found) PyErr_Clear();
  return found;
}

/// The items of a container, one after the other, as they were: keys and values in turn for a dict.
class Sequence {
 public:
  explicit Sequence(PyObject* known) noexcept : known_(known) {}

  bool goes_on(PyObject* object) noexcept {
    if (place_ == PyTuple_GET_SIZE(known_)) return false;
    PyObject* was = PyTuple_GET_ITEM(known_, place_++);
    return was == object || was == Py_NotImplemented || is_same_value(object, was);
  }
  bool is_complete() const noexcept { return place_ == PyTuple_GET_SIZE(known_); }

 private:
  PyObject* known_;
  Py_ssize_t place_ = 0;
};

/// The iterator is that of the class that holds the items, never one of a user.
bool has_items(PyObject* container, PyTypeObject* base, PyObject* known) noexcept {
  if (PyDict_Check(container)) {
    const Py_ssize_t size = PyDict_GET_SIZE(container);
    if (2 * size != PyTuple_GET_SIZE(known)) return false;
    if (size == 0) return true;
  }
  Sequence items(known);
  if (base == &PyDict_Type) {
    PyObject *key, *value;
    for (Py_ssize_t place = 0; PyDict_Next(container, &place, &key, &value);)
      if (!items.goes_on(key) || !items.goes_on(value)) return false;
    return items.is_complete();
  }
  if (base == &PyList_Type) {
    for (Py_ssize_t place = 0; place < PyList_GET_SIZE(container); ++place)
      if (!items.goes_on(PyList_GET_ITEM(container, place))) return false;
    return items.is_complete();
  }
  const auto iterator = py::reinterpret_steal<py::object>(base->tp_iter(container));
  if (!iterator) return PyErr_Clear(), false;
  while (const auto each = py::reinterpret_steal<py::object>(PyIter_Next(iterator.ptr()))) {
    if (!items.goes_on(each.ptr())) return false;
    if (PyDict_Check(container)) {
      PyObject* value = item_of(container, each.ptr());
      if (!value || !items.goes_on(value)) return false;
    }
  }
  if (PyErr_Occurred()) return PyErr_Clear(), false;  // changed meanwhile
  return items.is_complete();
}

bool is_defined_as(PyObject* function, PyObject* known) noexcept {
  const auto same = [known](Py_ssize_t place, PyObject* now) {
    return PyTuple_GET_ITEM(known, place) == (now ? now : Py_None);
  };
  return same(0, PyFunction_GET_CODE(function)) && same(1, PyFunction_GET_DEFAULTS(function)) &&
         same(2, PyFunction_GET_KW_DEFAULTS(function));
}

/// Whether functools.lru_cache has a result for a key. It shows both to the collector, one after the other. The object
/// that holds them does not tell: a cache that is full puts others into it.
bool keeps(PyObject* cached, PyObject* key, PyObject* result) noexcept {
  struct Search {
    PyObject *key, *result, *before;
    bool is_found;
  } search{key, result, nullptr, false};
  const visitproc visit = [](PyObject* seen, void* arg) {
    auto& search = *static_cast<Search*>(arg);
    search.is_found = search.is_found || (search.before == search.key && seen == search.result);
    search.before = seen;
    return 0;
  };
  Py_TYPE(cached)->tp_traverse(cached, visit, &search);
  return search.is_found;
}

}  // namespace

bool Binding::holds() const noexcept {
  PyObject* const whole = holder.ptr();
  const auto is_attribute = [&](PyObject* found) {
    const auto now = py::reinterpret_steal<py::object>(found);
    if (!now) return PyErr_Clear(), value.ptr() == Py_NotImplemented;
    return is_same_value(now.ptr(), value.ptr());
  };
  switch (kind) {
    case Kind::item: {
      PyObject* now = item_of(whole, key.ptr());
      return now && is_same_value(now, value.ptr());
    }
    case Kind::absent:
      return !item_of(whole, key.ptr());
    case Kind::cell: {
      PyObject* now = PyCell_GET(whole);
      return now ? is_same_value(now, value.ptr()) : value.ptr() == Py_NotImplemented;
    }
    case Kind::items:
      return has_items(whole, reinterpret_cast<PyTypeObject*>(key.ptr()), value.ptr());
    case Kind::slot:
      return is_attribute(PyObject_GenericGetAttr(whole, key.ptr()));
    case Kind::class_of:
      return reinterpret_cast<PyObject*>(Py_TYPE(whole)) == value.ptr();
    case Kind::fields:
      return is_attribute(PyObject_GenericGetDict(whole, nullptr));
    case Kind::function:
      return is_defined_as(whole, value.ptr());
    case Kind::bases:
      return reinterpret_cast<PyTypeObject*>(whole)->tp_mro == value.ptr();
    case Kind::kept:
      return keeps(whole, key.ptr(), value.ptr());
  }
  return false;
}

namespace {

using FunctionModes = at::impl::PythonTorchFunctionTLS;

/// That of a torch.device around the call; none for other modes of __torch_function__.
std::optional<c10::Device> device_of_mode(int64_t place) {
  const py::handle mode = FunctionModes::get_stack_at(place)->ptr(getPyInterpreter());
  if (std::string_view(Py_TYPE(mode.ptr())->tp_name) != "DeviceContext") return std::nullopt;
  const py::object device = py::getattr(mode, "device", py::none());
  if (!THPDevice_Check(device.ptr())) return std::nullopt;
  return reinterpret_cast<THPDevice*>(device.ptr())->device;
}

/// Of the innermost torch.device.
std::optional<c10::Device> device_of_modes() {
  const int64_t count = FunctionModes::stack_len();
  return count > 0 ? device_of_mode(count - 1) : std::nullopt;
}

/// Modes of a script, which do not stay what they are.
bool has_other_modes() {
  for (int64_t place = 0; place < FunctionModes::stack_len(); ++place)
    if (!device_of_mode(place)) return true;
  return false;
}

}  // namespace

bool keeps_casts() {
  const bool is_entered = at::autocast::increment_nesting() > 1;
  at::autocast::decrement_nesting();
  return is_entered && at::autocast::is_autocast_cache_enabled();
}

Modes Modes::current(bool casts) {
  const auto cast_to = [](c10::DeviceType device) {
    return at::autocast::is_autocast_enabled(device) ? at::autocast::get_autocast_dtype(device)
                                                     : at::ScalarType::Undefined;
  };
  const auto cpu_type = cast_to(at::kCPU), cuda_type = cast_to(at::kCUDA);
  return {c10::GradMode::is_enabled(),
          c10::InferenceMode::is_enabled(),
          torch::autograd::AnomalyMode::is_enabled(),
          (casts || cpu_type != at::ScalarType::Undefined || cuda_type != at::ScalarType::Undefined) && keeps_casts(),
          cpu_type,
          cuda_type,
          c10::get_default_dtype_as_scalartype(),
          FunctionModes::stack_len(),
          device_of_modes(),
          recording::routes()};
}

bool Modes::operator==(const Modes& other) const noexcept {
  return grad == other.grad && inference == other.inference && anomaly == other.anomaly &&
         default_type == other.default_type && functions == other.functions && device == other.device &&
         casts_are_kept == other.casts_are_kept && cpu_type == other.cpu_type && cuda_type == other.cuda_type &&
         routes == other.routes;
}

py::tuple Modes::in_python() const {
  return py::make_tuple(grad, inference, anomaly, static_cast<int>(cpu_type), static_cast<int>(cuda_type),
                        casts_are_kept, static_cast<int>(default_type), functions, device ? device->str() : "",
                        py::tuple(py::cast(switches())));
}

Routes routes() {
  at::Context& torch = at::globalContext();
  return {torch.userEnabledMkldnn(),
          torch.userEnabledCuDNN(),
          torch.deterministicCuDNN(),
          torch.deterministicAlgorithms(),
          torch.userEnabledFlashSDP(),
          torch.userEnabledMemEfficientSDP(),
          torch.userEnabledMathSDP(),
          torch.userEnabledCuDNNSDP(),
          torch.userEnabledOverrideableSDP(),
          torch.allowFP16BF16ReductionMathSDP(),
          static_cast<int64_t>(torch.sDPPriorityOrder().front())};
}

Switches switches() {
  at::Context& torch = at::globalContext();
  using at::Float32Backend, at::Float32Op;
  const auto precision = [&](Float32Backend backend, Float32Op of) {
    return static_cast<int64_t>(torch.float32Precision(backend, of));
  };
  Switches found{precision(Float32Backend::GENERIC, Float32Op::ALL),
                 precision(Float32Backend::CUDA, Float32Op::MATMUL),
                 precision(Float32Backend::CUDA, Float32Op::CONV),
                 precision(Float32Backend::CUDA, Float32Op::RNN),
                 precision(Float32Backend::MKLDNN, Float32Op::MATMUL),
                 precision(Float32Backend::MKLDNN, Float32Op::CONV),
                 precision(Float32Backend::MKLDNN, Float32Op::RNN),
                 static_cast<int64_t>(torch.allowFP16ReductionCuBLAS()),
                 static_cast<int64_t>(torch.allowBF16ReductionCuBLAS()),
                 torch.allowFP16AccumulationCuBLAS(),
                 torch.allowFP16ReductionCPU(),
                 static_cast<int64_t>(torch.blasPreferredBackend()),
                 static_cast<int64_t>(torch.linalgPreferredBackend()),
                 static_cast<int64_t>(torch.qEngine()),
                 torch.deterministicMkldnn(),
                 torch.userEnabledNNPACK(),
                 torch.benchmarkCuDNN(),
                 torch.deterministicAlgorithmsWarnOnly(),
                 torch.deterministicFillUninitializedMemory()};
  const Routes others = routes();
  std::copy(others.begin(), others.end(), found.end() - others.size());
  return found;
}

bool is_intercepted() {
  return c10::impl::TorchDispatchModeTLS::stack_len() > 0 || has_other_modes() ||
         at::SavedTensorDefaultHooks::get_hooks() ||
         c10::impl::tls_is_dispatch_key_included(c10::DispatchKey::FuncTorchDynamicLayerFrontMode);
}

bool is_waited_for(const at::Tensor& tensor) {
  namespace autograd = torch::autograd::impl;
  if (!autograd::get_autograd_meta(tensor)) return false;
  if (!autograd::hooks(tensor).empty() || autograd::post_acc_grad_hooks(tensor)) return true;
  const auto node = autograd::try_get_grad_accumulator(tensor);
  return node && !(node->pre_hooks().empty() && node->post_hooks().empty());
}

bool GradientBefore::holds() const {
  const at::Tensor& tensor = behind(parameter);
  if (is_waited_for(tensor)) return false;
  const at::Tensor& now = tensor.grad();
  return now.defined() == is_there && (!same.defined() || now.is_same(same));
}

Memory::Memory(py::object of)
    : tensor(std::move(of)), data(behind(tensor).const_data_ptr()), requires_grad(behind(tensor).requires_grad()) {
  sizes.assign(behind(tensor).sizes().begin(), behind(tensor).sizes().end());
  strides.assign(behind(tensor).strides().begin(), behind(tensor).strides().end());
}

bool Memory::holds() const {
  const at::Tensor& now = behind(tensor);
  return now.const_data_ptr() == data && now.requires_grad() == requires_grad &&
         now.sizes() == at::IntArrayRef(sizes) && now.strides() == at::IntArrayRef(strides);
}

std::optional<double> Source::read() const {
  if (counter.defined()) {
    const OthersMayRun meanwhile;  // one on a device is waited for
    return counter.item<double>() + ahead;
  }
  PyObject* now = PyDict_GetItemWithError(group.ptr(), key.ptr());
  if (now && item >= 0)
    now = PyTuple_CheckExact(now) && item < PyTuple_GET_SIZE(now) ? PyTuple_GET_ITEM(now, item) : nullptr;
  // others compute with it by rules of their own, such as a float32 of NumPy
  const double value = now && (PyFloat_Check(now) || PyLong_Check(now)) ? PyFloat_AsDouble(now) : 0;
  if ((value == -1 && PyErr_Occurred()) || value == 0) return PyErr_Clear(), std::nullopt;
  return value;
}

}  // namespace fpt::recording
