// SPDX-License-Identifier: MIT
/// Python as the engine of tensors.
#include <algorithm>
#include <iterator>
#include <utility>

#include "python/interpreter.hpp"
#include "torch/dlpack.hpp"
#include "torch/framework.hpp"
#include "values/engine.hpp"
#include "values/object_tensor.hpp"
#include "values/python_value.hpp"

namespace fpt {
namespace {

struct ToObject : ToPython {
  using ToPython::operator();
  Ref operator()(std::monostate) const { return Ref::borrow(Py_None); }
  Ref operator()(const TensorPtr& tensor) const { return torch_object_of(*tensor); }
  template <class Item>
  Ref operator()(const std::vector<Item>& items) const {
    Ref tuple = checked(PyTuple_New(static_cast<Py_ssize_t>(items.size())), "a tuple");
    for (std::size_t i = 0; i < items.size(); ++i)
      PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), checked((*this)(items[i]).release(), "").release());
    return tuple;
  }
};

Ref attribute(const Ref& object, const char* name) {
  return checked(PyObject_GetAttrString(object.get(), name), "a tensor");
}

Ref result_of(const Ref& object, const char* method) {
  return checked(PyObject_CallMethod(object.get(), method, nullptr), "a tensor");
}

std::string_view without(std::string_view name, std::string_view prefix) {
  return name.substr(0, prefix.size()) == prefix ? name.substr(prefix.size()) : name;
}

/// Below torch, or below the class of the first argument: one of its own may have another function of that name.
Ref function_of_torch(std::string_view name, PyObject* args) {
  static PyObject* torch = nullptr;  // under the lock of Python, which an import lets go: no static initialisation
  if (!torch) torch = checked(PyImport_ImportModule("torch"), "torch").release();
  const std::string_view method = without(name, "Tensor.");
  const bool is_method = method != name && method.find('.') == std::string_view::npos;
  PyObject* type = is_method ? reinterpret_cast<PyObject*>(Py_TYPE(PyTuple_GET_ITEM(args, 0))) : torch;
  Ref found = Ref::borrow(type);
  for (std::string_view rest = is_method ? method : name; !rest.empty();) {
    const std::string_view part = rest.substr(0, rest.find('.'));
    found = checked(PyObject_GetAttr(found.get(), text_object(part).get()), "");
    rest.remove_prefix(std::min(rest.size(), part.size() + 1));
  }
  return found;
}

Ref object_for(const TorchArgument& given) {
  Ref object = checked(std::visit(ToObject(), given.value).release(), "an argument");
  if (given.name != "dtype") return object;
  return checked(PyObject_CallOneArg(embed("torch_dtype"), object.get()), "");
}

std::vector<int64_t> numbers_in(PyObject* tuple) {
  std::vector<int64_t> numbers;
  numbers.reserve(static_cast<std::size_t>(PyTuple_GET_SIZE(tuple)));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); ++i)
    numbers.push_back(PyLong_AsLongLong(PyTuple_GET_ITEM(tuple, i)));
  if (PyErr_Occurred()) throw_python_error("numbers of torch");
  return numbers;
}

TorchValue value_in(Ref object, bool same_layout) {
  PyObject* value = object.get();
  if (is_tensor(value)) return tensor_of_object(std::move(object), same_layout);
  if (PyBool_Check(value)) return value == Py_True;
  if (PyLong_Check(value)) return static_cast<int64_t>(PyLong_AsLongLong(value));
  if (!PyTuple_Check(value)) return {};
  PyObject* first = PyTuple_GET_SIZE(value) > 0 ? PyTuple_GET_ITEM(value, 0) : nullptr;
  if (first && is_tensor(first)) return tensor_of_object(Ref::borrow(first), same_layout);
  return numbers_in(value);
}

PyObject* power(PyObject* left, PyObject* right) { return PyNumber_Power(left, right, Py_None); }

template <int comparison>
PyObject* compare(PyObject* left, PyObject* right) {
  return PyObject_RichCompare(left, right, comparison);
}

PyObject* copy(PyObject* target, PyObject* value) {
  return PyObject_CallMethodOneArg(target, text_object("copy_").get(), value);
}

/// In the order of the constants in ftn_pytorch.h.
constexpr PyObject* (*operators[])(PyObject*, PyObject*) = {
    PyNumber_Add,   PyNumber_Subtract, PyNumber_Multiply, PyNumber_TrueDivide, power,          compare<Py_EQ>,
    compare<Py_NE>, compare<Py_LT>,    compare<Py_LE>,    compare<Py_GT>,      compare<Py_GE>, PyNumber_MatrixMultiply,
    copy,
};
static_assert(std::size(operators) == copy_operation + 1, "one for each operator");

class PythonEngine : public Engine {
 public:
  std::optional<TorchValue> call(std::string_view function, const TorchArguments& given, bool same_layout) override {
    ensure_started();
    const InterpreterLock gil;
    const auto count = std::count_if(given.begin(), given.end(), [](const auto& each) { return each.name.empty(); });
    const Ref args = checked(PyTuple_New(count), "arguments");
    Ref named;
    for (std::size_t i = 0; i < given.size(); ++i) {
      Ref object = object_for(given[i]);
      if (given[i].name.empty()) {
        PyTuple_SET_ITEM(args.get(), static_cast<Py_ssize_t>(i), object.release());
        continue;
      }
      if (!named) named = checked(PyDict_New(), "arguments");
      if (PyDict_SetItem(named.get(), text_object(given[i].name).get(), object.get()) != 0)
        throw_python_error("arguments");
    }
    const Ref callable = function_of_torch(function, args.get());
    Ref result = checked(PyObject_Call(callable.get(), args.get(), named.get()), "");
    return is_in_place(function) ? TorchValue() : value_in(std::move(result), same_layout);
  }

  TensorFacts describe(Tensor& tensor) override {
    ensure_started();
    const InterpreterLock gil;
    const Ref object = tensor.is_plain_memory() ? torch_object_of(tensor) : object_of(tensor);
    TensorFacts facts;
    const Ref dtype = checked(PyObject_Str(attribute(object, "dtype").get()), "a tensor");
    const char* name = PyUnicode_AsUTF8(dtype.get());
    if (!name) throw_python_error("a tensor");
    facts.dtype = without(name, "torch.");
    facts.shape = numbers_in(attribute(object, "shape").get());
    facts.is_of_torch = is_tensor(object.get());
    if (!facts.is_of_torch) return facts;
    facts.requires_grad = attribute(object, "requires_grad").get() == Py_True;
    facts.has_graph = facts.requires_grad && attribute(object, "grad_fn").get() != Py_None;
    facts.is_inference = result_of(object, "is_inference").get() == Py_True;
    if (!facts.has_graph) return facts;
    const Ref shown = checked(PyObject_CallOneArg(embed("viewed"), object.get()), "a tensor");
    facts.is_view = shown.get() != Py_None;
    facts.is_of_leaf = facts.is_view && attribute(shown, "is_leaf").get() == Py_True;
    return facts;
  }

  Range memory_of(Tensor& tensor) override {
    ensure_started();
    const InterpreterLock gil;
    const Ref storage = result_of(torch_object_of(tensor), "untyped_storage");
    const auto* begin = static_cast<const char*>(PyLong_AsVoidPtr(result_of(storage, "data_ptr").get()));
    return {begin, begin + PyLong_AsSsize_t(result_of(storage, "nbytes").get())};
  }

  void written(Tensor& tensor) override {
    const InterpreterLock gil;
    checked(PyObject_CallOneArg(embed("written"), object_of(tensor).get()), "an output");
  }

  TensorPtr tensor_of(const Array& seen, std::shared_ptr<void> owner, bool same_layout) override {
    ensure_started();
    const InterpreterLock gil;
    return tensor_of_memory(seen, std::move(owner), same_layout);
  }

  TensorPtr tensor_at(void* address, bool same_layout) override {
    ensure_started();
    const InterpreterLock gil;
    Ref object = checked(PyObject_CallFunction(embed("tensor_at"), "N", PyLong_FromVoidPtr(address)), "a tensor");
    return object_tensor(std::move(object), same_layout);
  }

  void with_address(Tensor& tensor, const std::function<void(void* address)>& use) override {
    ensure_started();
    const InterpreterLock gil;
    const Ref object = torch_object_of(tensor);
    if (void* address = address_of_object(object.get())) use(address);
  }

  TensorPtr gradient_of(Tensor& tensor) override {
    ensure_started();
    const InterpreterLock gil;
    Ref gradient = attribute(torch_object_of(tensor), "grad");
    return gradient.get() == Py_None ? nullptr : tensor_of_object(std::move(gradient), tensor.same_layout());
  }

  uint64_t last_on_memory() noexcept override { return dlpack::last_serial(); }
  bool is_on_memory(Tensor& tensor, uint64_t after) override {
    return dlpack::is_in_memory_of_caller(tensor.array().data, after);
  }

  TensorPtr operate(int32_t operation, Tensor* left, Tensor* right, const fpt_arg* scalar, bool same_layout) override {
    ensure_started();
    const InterpreterLock gil;
    const auto object = [scalar](Tensor* tensor) { return tensor ? torch_object_of(*tensor) : python_value(*scalar); };
    Ref result = checked(operators[operation](object(left).get(), object(right).get()), "");
    return operation == copy_operation ? nullptr : tensor_of_object(std::move(result), same_layout);
  }

  bool computes_gradients() override {
    const std::optional<TorchValue> answer = call("is_grad_enabled", {}, false);
    return answer && std::get<bool>(*answer);
  }
  void compute_gradients(bool wanted) override { call("set_grad_enabled", {{wanted}}, false); }

  void* enter_autocast(const std::string& device, const std::string& dtype) override {
    ensure_started();
    const InterpreterLock gil;
    return checked(PyObject_CallFunction(embed("enter_autocast"), "ss", device.c_str(), dtype.c_str()), "autocast")
        .release();
  }

  bool leave_scope(const std::function<void()>& free, const std::vector<void*>& autocasts) override {
    if (!may_use_python()) return free(), false;  // of a program that has started no Python, or has ended it
    const InterpreterLock gil;
    free();
    for (auto context = autocasts.rbegin(); context != autocasts.rend(); ++context) {
      const Ref entered(static_cast<PyObject*>(*context));
      const Ref left(PyObject_CallMethod(entered.get(), "__exit__", "OOO", Py_None, Py_None, Py_None));
      if (!left) PyErr_Clear();
    }
    return true;
  }
};

[[maybe_unused]] const bool provided = (provide_python_engine(*new PythonEngine), true);

}  // namespace
}  // namespace fpt
