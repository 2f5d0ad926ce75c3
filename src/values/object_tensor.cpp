// SPDX-License-Identifier: MIT
#include "values/object_tensor.hpp"

#include <utility>

#include "arrays/copy.hpp"
#include "python/interpreter.hpp"
#include "torch/framework.hpp"
#include "values/engine.hpp"

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

/// All tensors of this engine.
class PythonTensor : public Tensor {
 public:
  Tensor& in_torch() override { return *this; }
  Tensor& in_python() override { return *this; }
  virtual Ref object() = 0;
  virtual Ref torch_object() { return object(); }

 protected:
  using Tensor::Tensor;
};

class ObjectTensor : public PythonTensor {
 public:
  ObjectTensor(Ref object, bool same_layout) : PythonTensor(same_layout), object_(std::move(object)) {}

  Array array() override {
    const InterpreterLock gil;
    const Ref known = object_.get();
    Ref shown = known;
    const Array array = turned(look_into(shown));
    if (shown.get() == known.get()) return array;
    if (object_.get().get() != known.get()) return this->array();  // another thread was first, and shows its memory
    object_.set(std::move(shown));
    return array;
  }
  Ref object() override { return object_.get(); }
  /// What torch computes with: an array of NumPy would take over an operator that it is on the left of.
  Ref torch_object() override {
    const Ref known = object_.get();
    if (is_tensor(known.get())) return object_.get();
    const Array shown = array();
    object_.set(shown.is_protected || !has_plain_strides(shown)  // torch protects nothing
                    ? object_on_copy(shown)
                    : make_array(Framework::torch, turned(shown), std::make_shared<Held>(known), false).object);
    return object_.get();
  }

 private:
  Ref object_on_copy(const Array& array) const {
    Array copied;
    Storage memory = packed_copy(array, array.dtype, copied);
    return make_array(Framework::torch, turned(copied), std::move(memory), false).object;
  }

  Held object_;
};

PythonTensor& python_tensor(Tensor& tensor) { return static_cast<PythonTensor&>(tensor.in_python()); }

}  // namespace

TensorPtr tensor_of_object(Ref object, bool same_layout) {
  if (libtorch_engine())
    if (void* address = address_of_object(object.get())) return engine().tensor_at(address, same_layout);
  return object_tensor(std::move(object), same_layout);
}

void* address_of_object(PyObject* object) {
  if (!is_tensor(object) || !torch_access::is_plain_tensor(object)) return nullptr;
  return PyLong_AsVoidPtr(checked(PyObject_CallOneArg(embed("address_of"), object), "a tensor").get());
}

TensorPtr object_tensor(Ref object, bool same_layout) {
  return std::make_shared<ObjectTensor>(std::move(object), same_layout);
}

Ref object_of(Tensor& tensor) { return tensor.is_plain_memory() ? Ref() : python_tensor(tensor).object(); }

Ref torch_object_of(Tensor& tensor) { return python_tensor(tensor).torch_object(); }

TensorPtr tensor_of_memory(const Array& seen, std::shared_ptr<void> owner, bool same_layout) {
  return object_tensor(make_array(Framework::torch, seen, std::move(owner), false).object, same_layout);
}

}  // namespace fpt
