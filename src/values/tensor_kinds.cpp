// SPDX-License-Identifier: MIT
/// The kinds of tensors that need no engine: memory, gradients, and failures. Knows nothing of Python.
#include <atomic>
#include <cstring>
#include <mutex>
#include <utility>

#include "arrays/scalar.hpp"
#include "values/assignment.hpp"
#include "values/engine.hpp"
#include "values/tensor.hpp"

namespace fpt {
namespace {

/// Memory of the caller or of a result, and the tensor of torch that was made of it.
class MemoryTensor : public Tensor {
 public:
  MemoryTensor(const fpt_arg& arg, const Array& array, std::shared_ptr<void> owner, bool same_layout)
      : Tensor(same_layout), arg_(arg), array_(array), owner_(std::move(owner)) {}

  bool is_of_caller() override { return !owner_ && is_as_described(); }
  bool is_plain_memory() const noexcept override { return !known(); }
  bool is_of_libtorch() const noexcept override {
    const Tensor* shown = known();
    return shown && shown->is_of_libtorch();
  }
  Array array() override {
    Tensor* shown = known();
    return shown ? shown->array() : array_;
  }
  std::shared_ptr<void> owner() const override { return owner_; }
  Tensor& in_torch() override {
    if (Tensor* shown = known()) return *shown;
    TensorPtr made = engine().tensor_of(turned(array_), owner_, same_layout());
    static std::mutex& mutex = *new std::mutex;
    const std::lock_guard<std::mutex> lock(mutex);
    if (is_plain_memory()) {  // unless another thread has made one meanwhile
      made_ = std::move(made);
      known_.store(made_.get(), std::memory_order_release);
    }
    return *known();
  }

 protected:
  fpt_arg description() override { return is_as_described() ? arg_ : argument_of(array()); }

 private:
  Tensor* known() const noexcept { return known_.load(std::memory_order_acquire); }
  bool is_as_described() {
    Tensor* shown = known();
    return !shown || is_same_memory(shown->array(), array_);
  }

  const fpt_arg arg_;
  const Array array_;
  const std::shared_ptr<void> owner_;
  TensorPtr made_;
  std::atomic<Tensor*> known_{nullptr};
};

class FailureTensor : public Tensor {
 public:
  explicit FailureTensor(const Error& error) : Tensor(false), error_(error) {}

  const Error* failure() const noexcept override { return &error_; }
  TensorPtr now() override { throw Error(error_); }
  Array array() override { throw Error(error_); }
  Tensor& in_torch() override { throw Error(error_); }

 private:
  const Error error_;
};

class GradientTensor : public Tensor {
 public:
  explicit GradientTensor(TensorPtr source) : Tensor(source->same_layout()), source_(std::move(source)) {}

  TensorPtr now() override { return present_gradient(source_); }
  Array array() override { return latest().array(); }
  Tensor& in_torch() override { return latest().in_torch(); }

 private:
  /// Held until the next question: its memory may be handed out, and torch may have another gradient already.
  Tensor& latest() {
    TensorPtr found = now();
    Tensor& tensor = *found;
    const std::lock_guard<std::mutex> lock(mutex_);
    std::swap(latest_, found);
    return tensor;
  }

  const TensorPtr source_;
  std::mutex mutex_;
  TensorPtr latest_;
};

}  // namespace

TensorPtr Tensor::of_arg(const fpt_arg& arg, bool same_layout) {
  require_described(arg, "the array");
  if (is_tensor_handle(arg.handle)) return named_at(arg.handle);
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

TensorPtr Tensor::of_failure(const Error& error) { return std::make_shared<FailureTensor>(error); }

TensorPtr Tensor::of_gradient(TensorPtr source) { return std::make_shared<GradientTensor>(std::move(source)); }

}  // namespace fpt
