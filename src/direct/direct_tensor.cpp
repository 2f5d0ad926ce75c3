// SPDX-License-Identifier: MIT
#include "direct/direct_tensor.hpp"

#include <atomic>
#include <mutex>
#include <utility>

#include "base/cuda_context.hpp"
#include "direct/direct_plugin.hpp"
#include "direct/direct_value.hpp"
#include "values/engine.hpp"

namespace fpt {
namespace {

void release(fpt_direct_tensor* tensor) {
  const CallerContext gpu;  // tensors may be let go outside of a call
  direct_plugin().tensors.release_tensor(tensor);
}

Array array_of(fpt_direct_tensor* raw) {
  fpt_direct_value value{};
  require_direct(direct_plugin().tensors.describe_tensor(raw, &value));
  return array_of_value(value);
}

/// All tensors of this engine. They are objects of Python, too, from the moment that Python asks for one.
class LibtorchTensor : public Tensor {
 public:
  virtual RawTensor raw() = 0;
  bool is_of_libtorch() const noexcept override { return true; }
  Tensor& in_torch() override { return *this; }
  Tensor& in_python() override {
    if (Tensor* known = known_.load(std::memory_order_acquire)) return *known;
    TensorPtr made = as_python();  // which may let other threads run Python, so there is no lock
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!in_python_) {
      in_python_ = std::move(made);
      known_.store(in_python_.get(), std::memory_order_release);
    }
    return *in_python_;
  }

 protected:
  using Tensor::Tensor;
  virtual TensorPtr as_python() = 0;

 private:
  std::mutex mutex_;
  TensorPtr in_python_;
  std::atomic<Tensor*> known_{nullptr};
};

class DirectTensor : public LibtorchTensor {
 public:
  DirectTensor(fpt_direct_tensor* raw, bool same_layout) : LibtorchTensor(same_layout), raw_(raw) {}
  ~DirectTensor() override { release(raw_); }

  Array array() override { return turned(array_of(raw_)); }
  RawTensor raw() override { return {raw_, nullptr}; }

 protected:
  TensorPtr as_python() override {
    return python_engine().tensor_at(direct_plugin().tensors.address_of_tensor(raw_), same_layout());
  }

 private:
  fpt_direct_tensor* const raw_;
};

class DirectGradient : public LibtorchTensor {
 public:
  explicit DirectGradient(TensorPtr source) : LibtorchTensor(source->same_layout()), source_(std::move(source)) {}

  Array array() override {
    const RawTensor found = raw();
    const std::lock_guard<std::mutex> lock(mutex_);
    latest_ = found;
    return turned(array_of(found.get()));
  }
  RawTensor raw() override {
    const RawTensor source = raw_of(*source_);
    fpt_direct_tensor* gradient = nullptr;
    require_direct(direct_plugin().tensors.gradient_of_tensor(source.get(), &gradient));
    return {gradient, std::shared_ptr<fpt_direct_tensor>(gradient, release)};
  }

 protected:
  TensorPtr as_python() override { return python_engine().gradient_of(source_); }

 private:
  const TensorPtr source_;
  std::mutex mutex_;
  RawTensor latest_;  // whose memory was handed out: torch may have another one already
};

}  // namespace

TensorPtr tensor_of_raw(fpt_direct_tensor* raw, bool same_layout) {
  return std::make_shared<DirectTensor>(raw, same_layout);
}

TensorPtr gradient_of_raw(TensorPtr source) { return std::make_shared<DirectGradient>(std::move(source)); }

RawTensor shared_raw_of(Tensor& tensor) {
  if (libtorch_engine()) return raw_of(tensor);
  fpt_direct_tensor* shared = nullptr;
  python_engine().with_address(
      tensor, [&](void* address) { require_direct(direct_plugin().tensors.tensor_at(address, &shared)); });
  return shared ? RawTensor{shared, std::shared_ptr<fpt_direct_tensor>(shared, release)} : RawTensor();
}

TensorPtr shared_tensor_of_raw(fpt_direct_tensor* raw, bool same_layout) {
  TensorPtr tensor = tensor_of_raw(raw, same_layout);
  if (libtorch_engine()) return tensor;
  return python_engine().tensor_at(direct_plugin().tensors.address_of_tensor(raw), same_layout);
}

RawTensor raw_of(Tensor& tensor) {
  Tensor& known = tensor.in_torch();
  return known.is_of_libtorch() ? static_cast<LibtorchTensor&>(known).raw() : RawTensor();
}

}  // namespace fpt
