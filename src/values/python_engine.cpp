// SPDX-License-Identifier: MIT
/// Python as the engine of tensors.
#include "python/interpreter.hpp"
#include "torch/dlpack.hpp"
#include "torch/framework.hpp"
#include "values/engine.hpp"
#include "values/object_tensor.hpp"
#include "values/operators.hpp"

namespace fpt {
namespace {

struct GradientMode {
  PyObject *is_enabled = nullptr, *set_enabled = nullptr;
};

constexpr const char* switching = "switching gradients";

/// The functions of torch, with the interpreter lock.
const GradientMode& gradient_mode() {
  static GradientMode mode;
  if (!mode.set_enabled) {
    const Ref torch = checked(PyImport_ImportModule("torch"), switching);
    mode.is_enabled = checked(PyObject_GetAttrString(torch.get(), "is_grad_enabled"), switching).release();
    mode.set_enabled = checked(PyObject_GetAttrString(torch.get(), "set_grad_enabled"), switching).release();
  }
  return mode;
}

bool gradients_are_on() { return checked(PyObject_CallNoArgs(gradient_mode().is_enabled), switching).get() == Py_True; }

class PythonEngine : public Engine {
 public:
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

  TensorPtr gradient_of(TensorPtr tensor) override { return tensor_of_gradient(std::move(tensor)); }

  uint64_t last_on_memory() noexcept override { return dlpack::last_serial(); }
  bool is_on_memory(Tensor& tensor, uint64_t after) override {
    return dlpack::is_in_memory_of_caller(tensor.array().data, after);
  }

  TensorPtr holding_memory(const TensorPtr& tensor) override {
    const InterpreterLock gil;
    const Ref object = object_of(*tensor);
    if (!is_tensor(object.get())) return tensor;
    return tensor_of_object(checked(PyObject_CallMethod(object.get(), "detach", nullptr), "passing a tensor"),
                            tensor->same_layout());
  }

  TensorPtr operate(int32_t operation, const TensorPtr& left, const TensorPtr& right, const fpt_arg* scalar) override {
    ensure_started();
    const InterpreterLock gil;
    return fpt::operate(operation, left, right, scalar);
  }

  void write(Tensor& target, Tensor& value) override {
    ensure_started();
    const InterpreterLock gil;
    write_tensor(target, value);
  }

  void require_writable(Tensor& target) override {
    ensure_started();
    const InterpreterLock gil;
    if (!is_tensor(object_of(target).get()))
      fail(FPT_ERR_ARGUMENT, "an array of NumPy that a script returned cannot be an output: pass the array itself with ",
           "torch_out");
  }
  void written(Tensor& target) noexcept override {
    try {
      const InterpreterLock gil;
      checked(PyObject_CallOneArg(embed("written"), object_of(target).get()), "an output");
    } catch (const std::exception&) {  // a gradient that is gone has nobody who would use it
    }
  }

  bool records_gradients(Tensor& tensor) override {
    if (!may_use_python()) return false;
    const InterpreterLock gil;
    const Ref object = object_of(tensor);
    if (!is_tensor(object.get())) return false;
    const Ref wanted = checked(PyObject_GetAttrString(object.get(), "requires_grad"), "a tensor");
    return wanted.get() == Py_True && gradients_are_on();
  }

  bool exchange_gradients(bool wanted) override {
    ensure_started();
    const InterpreterLock gil;
    const bool before = gradients_are_on();
    checked(PyObject_CallOneArg(gradient_mode().set_enabled, wanted ? Py_True : Py_False), switching);
    return before;
  }

  void* enter_autocast(const std::string& device, const std::string& dtype) override {
    ensure_started();
    const InterpreterLock gil;
    return checked(PyObject_CallFunction(embed("enter_autocast"), "ss", device.c_str(), dtype.c_str()), "autocast")
        .release();
  }

  void leave_scope(const std::function<void()>& free, const std::vector<void*>& autocasts,
                   std::optional<bool> gradients) override {
    if (!may_use_python()) return free();  // of a program that has started no Python, or has ended it
    const InterpreterLock gil;
    free();
    for (auto context = autocasts.rbegin(); context != autocasts.rend(); ++context) {
      const Ref entered(static_cast<PyObject*>(*context));
      const Ref left(PyObject_CallMethod(entered.get(), "__exit__", "OOO", Py_None, Py_None, Py_None));
      if (!left) PyErr_Clear();
    }
    if (gradients) exchange_gradients(*gradients);  // last, because it may fail
  }
};

[[maybe_unused]] const bool provided = (provide_python_engine(*new PythonEngine), true);

}  // namespace
}  // namespace fpt
