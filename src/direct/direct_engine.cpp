// SPDX-License-Identifier: MIT
/// libtorch as the engine of tensors. Knows nothing of Python.
#include <atomic>
#include <utility>

#include "base/switches.hpp"
#include "calls/python_side.hpp"
#include "direct/backend.hpp"
#include "direct/direct_plugin.hpp"
#include "direct/direct_tensor.hpp"
#include "direct/direct_value.hpp"
#include "values/engine.hpp"

namespace fpt {
namespace {

fpt_direct_operand operand(const RawTensor& raw, bool is_turned) { return {raw.get(), nullptr, is_turned}; }

class DirectEngine : public Engine {
 public:
  TensorPtr tensor_of(const Array& seen, std::shared_ptr<void> owner, bool same_layout) override {
    fpt_direct_value memory{};
    set_memory(memory, seen);
    using Owner = std::shared_ptr<void>;
    auto held = owner ? std::make_unique<Owner>(std::move(owner)) : nullptr;
    fpt_direct_tensor* made = nullptr;
    require_direct(direct_plugin().tensors.make_tensor(
        &memory, held.release(), [](void* ended) { delete static_cast<Owner*>(ended); }, &made));
    return tensor_of_raw(made, same_layout);
  }

  TensorPtr tensor_at(void* address, bool same_layout) override {
    fpt_direct_tensor* made = nullptr;
    require_direct(direct_plugin().tensors.tensor_at(address, &made));
    return tensor_of_raw(made, same_layout);
  }

  void with_address(Tensor& tensor, const std::function<void(void* address)>& use) override {
    if (const RawTensor raw = raw_of(tensor)) use(direct_plugin().tensors.address_of_tensor(raw.get()));
  }

  TensorPtr gradient_of(TensorPtr tensor) override {
    return raw_of(*tensor) ? gradient_of_raw(std::move(tensor)) : python_engine().gradient_of(std::move(tensor));
  }

  uint64_t last_on_memory() noexcept override { return direct_plugin().tensors.last_on_memory(); }
  bool is_on_memory(Tensor& tensor, uint64_t after) override {
    const RawTensor raw = raw_of(tensor);
    return raw && direct_plugin().tensors.is_on_memory(raw.get(), after) != 0;
  }

  TensorPtr holding_memory(const TensorPtr& tensor) override {
    const RawTensor raw = raw_of(*tensor);
    if (!raw) return python_engine().holding_memory(tensor);
    fpt_direct_tensor* detached = nullptr;
    require_direct(direct_plugin().tensors.detach_tensor(raw.get(), &detached));
    return tensor_of_raw(detached, tensor->same_layout());
  }

  TensorPtr operate(int32_t operation, const TensorPtr& left, const TensorPtr& right, const fpt_arg* scalar) override {
    const RawTensor one = left ? raw_of(*left) : RawTensor(), other = right ? raw_of(*right) : RawTensor();
    if ((left && !one) || (right && !other)) return python_engine().operate(operation, left, right, scalar);
    fpt_direct_operand first{one.get(), scalar, 0}, second{other.get(), scalar, 0};
    bool same_layout = (left ? left : right)->same_layout();
    if (left && right && same_layout != right->same_layout()) {
      const bool turns_left = left->array().rank < right->array().rank;
      (turns_left ? first : second).is_turned = 1;
      if (turns_left) same_layout = !same_layout;
    }
    fpt_direct_tensor* made = nullptr;
    require_direct(direct_plugin().tensors.operate(operation, &first, &second, same_layout, &made));
    return tensor_of_raw(made, same_layout);
  }

  void write(Tensor& target, Tensor& value) override {
    const RawTensor written = raw_of(target), given = raw_of(value);
    if (!written || !given) return python_engine().write(target, value);
    const fpt_direct_operand turned = operand(given, value.same_layout() != target.same_layout());
    require_direct(direct_plugin().tensors.write_tensor(written.get(), &turned, target.same_layout()));
  }

  void require_writable(Tensor& target) override {
    const RawTensor raw = raw_of(target);
    if (!raw) return python_engine().require_writable(target);
    require_direct(direct_plugin().tensors.require_writable(raw.get()));
  }
  void written(Tensor& target) noexcept override {
    try {
      const RawTensor raw = raw_of(target);
      if (!raw) return python_engine().written(target);
      direct_plugin().tensors.written(raw.get());
    } catch (const std::exception&) {  // a gradient that is gone has nobody who would use it
    }
  }

  bool records_gradients(Tensor& tensor) override {
    const RawTensor raw = raw_of(tensor);
    return raw ? direct_plugin().tensors.records_gradients(raw.get()) != 0 : python_engine().records_gradients(tensor);
  }

  bool exchange_gradients(bool wanted) override { return direct_plugin().tensors.exchange_gradients(wanted) != 0; }

  void* enter_autocast(const std::string& device, const std::string& dtype) override {
    return python_engine().enter_autocast(device, dtype);
  }

  void leave_scope(const std::function<void()>& free, const std::vector<void*>& autocasts,
                   std::optional<bool> gradients) override {
    if (!autocasts.empty()) return python_engine().leave_scope(free, autocasts, gradients);
    free();
    if (gradients) exchange_gradients(*gradients);
  }
};

/// Asks Python where its half is open.
bool is_possible() {
  return !is_switched_off("FTN_PYTORCH_DIRECT_TENSORS") && !program_runs_python() && direct_refusal().empty();
}

}  // namespace

Engine* libtorch_engine() {
  // No static decides this by its initialiser: asking takes Python's lock, and a thread that holds it may be waiting
  // here for the same answer. So each asks who comes before there is one, and the first answer holds.
  enum { unknown, no, yes };
  static std::atomic<int> possible{unknown};
  int known = possible.load(std::memory_order_acquire);
  if (known == unknown) {
    const int found = is_possible() ? yes : no;
    if (possible.compare_exchange_strong(known, found, std::memory_order_acq_rel)) known = found;
  }
  static DirectEngine& engine = *new DirectEngine;
  return known == yes ? &engine : nullptr;
}

}  // namespace fpt
