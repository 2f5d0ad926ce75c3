// SPDX-License-Identifier: MIT
/// The kinds of tensors: memory, tensors of torch, gradients, failures.
#include <atomic>
#include <cstring>
#include <utility>

#include "arrays/scalar.hpp"
#include "python/interpreter.hpp"
#include "torch/framework.hpp"
#include "values/tensor.hpp"

namespace fpt {
namespace {

/// A reference that is let go on any thread.
class Held {
 public:
  Held() = default;
  explicit Held(Ref object) noexcept : object_(std::move(object)) {}
  ~Held() {
    if (PyObject* owned = object_.release())
      release_with_lock([](void* object) { Py_DECREF(static_cast<PyObject*>(object)); }, owned);
  }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

  const Ref& get() const noexcept { return object_; }
  void set(Ref object) noexcept { object_ = std::move(object); }

 private:
  Ref object_;
};

/// Memory of the caller or of a result, and the tensor of torch that was made of it.
class MemoryTensor : public Tensor {
 public:
  MemoryTensor(const fpt_arg& arg, const Array& array, std::shared_ptr<void> owner, bool same_layout)
      : Tensor(same_layout), arg_(arg), array_(array), owner_(std::move(owner)) {}

  bool is_of_caller() override { return !owner_ && is_as_described(); }
  bool is_plain_memory() const noexcept override { return !has_object_.load(std::memory_order_acquire); }
  Array array() override { return is_plain_memory() ? array_ : seen(); }
  std::shared_ptr<void> owner() const override { return owner_; }
  Ref object() override { return object_.get(); }
  Ref torch_object() override {
    if (!is_plain_memory()) return object_.get();
    Ref made = make_array(Framework::torch, turned(array_), owner_, false).object;
    if (is_plain_memory()) object_.set(std::move(made));  // unless Python has let another thread make one
    has_object_.store(true, std::memory_order_release);
    return object_.get();
  }

 protected:
  fpt_arg description() override { return is_as_described() ? arg_ : argument_of(array()); }

 private:
  /// What the tensor of torch shows, which may have been changed since it was made.
  Array seen() {
    const InterpreterLock gil;
    Ref object = object_.get();
    const Array array = turned(look_into(object));
    object_.set(std::move(object));
    return array;
  }
  bool is_as_described() { return is_plain_memory() || is_same_memory(seen(), array_); }

  const fpt_arg arg_;
  const Array array_;
  const std::shared_ptr<void> owner_;
  Held object_;
  std::atomic<bool> has_object_{false};
};

/// An array object of Python.
class ObjectTensor : public Tensor {
 public:
  ObjectTensor(Ref object, bool same_layout) : Tensor(same_layout), object_(std::move(object)) {}

  Array array() override {
    const InterpreterLock gil;
    Ref object = object_.get();
    const Array array = turned(look_into(object));
    object_.set(std::move(object));
    return array;
  }
  Ref object() override { return object_.get(); }
  /// What torch computes with: an array of NumPy would take over an operator that it is on the left of.
  Ref torch_object() override {
    const Ref known = object_.get();
    if (!is_tensor(known.get()))
      object_.set(make_array(Framework::torch, turned(array()), std::make_shared<Held>(known), false).object);
    return object_.get();
  }

 private:
  Held object_;
};

class GradientTensor : public Tensor {
 public:
  explicit GradientTensor(TensorPtr source) : Tensor(source->same_layout()), source_(std::move(source)) {}

  Array array() override {
    const InterpreterLock gil;
    const Ref known = object();
    Ref shown = known;
    const Array array = turned(look_into(shown));
    if (shown.get() != known.get() && PyObject_SetAttrString(source_->torch_object().get(), "grad", shown.get()) != 0)
      throw_python_error("a gradient");
    latest_.set(std::move(shown));
    return array;
  }
  Ref object() override {
    Ref gradient = checked(PyObject_GetAttrString(source_->torch_object().get(), "grad"), "a gradient");
    if (gradient.get() == Py_None)
      fail(FPT_ERR_ARGUMENT, "there is no gradient yet: call backward first, for a tensor with requires_grad");
    return gradient;
  }

 private:
  const TensorPtr source_;
  Held latest_;  // whose memory was handed out: torch may have another one already
};

class FailureTensor : public Tensor {
 public:
  explicit FailureTensor(const Error& error) : Tensor(false), error_(error) {}

  const Error* failure() const noexcept override { return &error_; }
  Array array() override { throw Error(error_); }
  Ref object() override { throw Error(error_); }

 private:
  const Error error_;
};

}  // namespace

Ref Tensor::torch_object() { return object(); }

TensorPtr Tensor::of_arg(const fpt_arg& arg, bool same_layout) {
  require_described(arg, "the array");
  if (is_tensor_handle(arg.handle)) return tensor_at(arg.handle);
  if (arg.dtype == FPT_TEXT) fail(FPT_ERR_KIND, "a string cannot become a tensor: pass it with torch_in");
  if (is_value(arg)) {
    std::shared_ptr<void> owner = allocate(sizeof arg.u.value);
    Array scalar = array_of(arg);
    scalar.data = std::memcpy(owner.get(), arg.u.value, sizeof arg.u.value);
    return std::make_shared<MemoryTensor>(argument_of(scalar), scalar, std::move(owner), same_layout);
  }
  if (std::shared_ptr<void> copy = claim_copy(arg)) {
    fpt_arg own = arg;
    own.access = FPT_IN;
    own.handle = 0;
    return std::make_shared<MemoryTensor>(own, array_of(own), std::move(copy), same_layout);
  }
  return std::make_shared<MemoryTensor>(arg, placed_array_of(arg), nullptr, same_layout);
}

TensorPtr Tensor::of_memory(const Array& seen, std::shared_ptr<void> owner, bool same_layout) {
  const Array array = same_layout ? seen : reversed(seen);
  return std::make_shared<MemoryTensor>(argument_of(array), array, std::move(owner), same_layout);
}

TensorPtr Tensor::of_object(Ref object, bool same_layout) {
  return std::make_shared<ObjectTensor>(std::move(object), same_layout);
}

TensorPtr Tensor::gradient_of(TensorPtr tensor) { return std::make_shared<GradientTensor>(std::move(tensor)); }

TensorPtr holding_memory(const TensorPtr& tensor) {
  if (tensor->is_plain_memory()) return tensor;
  const InterpreterLock gil;
  const Ref object = tensor->object();
  if (!is_tensor(object.get())) return tensor;
  return Tensor::of_object(checked(PyObject_CallMethod(object.get(), "detach", nullptr), "passing a tensor"),
                           tensor->same_layout());
}

TensorPtr Tensor::of_failure(const Error& error) { return std::make_shared<FailureTensor>(error); }

}  // namespace fpt
