// SPDX-License-Identifier: MIT
#include "plugin/direct_tensor.hpp"

#include <forward_list>
#include <utility>

#include "base/cuda_context.hpp"
#include "plugin/direct_answer.hpp"
#include "plugin/failure.hpp"
#include "plugin/tensors.hpp"
#include "values/engine.hpp"

namespace fpt::direct {
namespace {

/// Any thread may use the tensor while another one replaces it by an equal one, see array(): so what it was stays as
/// long as this.
class ValueTensor : public DirectTensor {
 public:
  ValueTensor(at::Tensor tensor, bool same_layout)
      : DirectTensor(same_layout), first_(std::move(tensor)), now_(&first_) {}
  ~ValueTensor() override {
    const CallerContext gpu;  // tensors may be let go outside of a call
    first_.reset();
    later_.clear();
  }

  Held value() override { return Held::borrowed(latest()); }
  /// A pending conjugation or sign is carried out: the tensor is another one of torch afterwards.
  Array array() override {
    return translated([this] {
      if (!is_plain(latest())) carry_out();
      return array_of_tensor(latest(), same_layout());
    });
  }

 protected:
  TensorPtr as_python() override { return python_engine().tensor_at(&latest(), same_layout()); }

 private:
  at::Tensor& latest() const noexcept { return *now_.load(std::memory_order_acquire); }
  void carry_out() {
    at::Tensor made = plain(latest(), "the tensor");  // ends without the lock where another was first
    static std::mutex& mutex = *new std::mutex;
    const std::lock_guard<std::mutex> lock(mutex);
    if (is_plain(latest())) return;
    later_.push_front(std::move(made));
    now_.store(&later_.front(), std::memory_order_release);
  }

  at::Tensor first_;
  std::forward_list<at::Tensor> later_;
  std::atomic<at::Tensor*> now_;
};

at::Tensor turned(const Held& held, bool turns) {
  return turns && held->defined() ? reversed_view(*held) : at::Tensor(*held);
}

}  // namespace

Tensor& DirectTensor::in_python() {
  if (Tensor* known = known_.load(std::memory_order_acquire)) return *known;
  TensorPtr made = as_python();  // which may let other threads run Python, so there is no lock
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!in_python_) {
    in_python_ = std::move(made);
    known_.store(in_python_.get(), std::memory_order_release);
  }
  return *in_python_;
}

TensorPtr tensor_of(at::Tensor tensor, bool same_layout) {
  return std::make_shared<ValueTensor>(std::move(tensor), same_layout);
}

Held at_tensor_of(Tensor& tensor) {
  Tensor& known = tensor.in_torch();
  return known.is_of_libtorch() ? static_cast<DirectTensor&>(known).value() : Held::owned(at::Tensor());
}

at::Tensor at_tensor_of(Tensor& tensor, bool same_layout) {
  return turned(at_tensor_of(tensor), tensor.same_layout() != same_layout);
}

at::Tensor shared_at_tensor_of(Tensor& tensor, bool same_layout) {
  if (libtorch_engine()) return at_tensor_of(tensor, same_layout);
  Held shared = Held::owned(at::Tensor());
  python_engine().with_address(
      tensor, [&](void* address) { shared = Held::owned(at::Tensor(*static_cast<at::Tensor*>(address))); });
  return turned(shared, tensor.same_layout() != same_layout);
}

TensorPtr shared_tensor_of(at::Tensor tensor, bool same_layout) {
  if (libtorch_engine()) return tensor_of(std::move(tensor), same_layout);
  return python_engine().tensor_at(&tensor, same_layout);
}

}  // namespace fpt::direct
