// SPDX-License-Identifier: MIT
/// libtorch as the engine of tensors.
#include <atomic>
#include <utility>

#include "plugin/direct_tensor.hpp"
#include "plugin/eager/eager_tensor.hpp"
#include "plugin/failure.hpp"
#include "plugin/parts.hpp"
#include "plugin/tensors.hpp"
#include "values/engine.hpp"

namespace fpt::direct {
namespace {

/// What a storage on memory of the caller has in place of an owner.
struct OnMemory {
  uint64_t number;
};

std::atomic<uint64_t> latest_on_memory{0};

void end_on_memory(void* ended) { delete static_cast<OnMemory*>(ended); }

MemoryOwner owner_for_torch(std::shared_ptr<void> owner) {
  using Owner = std::shared_ptr<void>;
  if (!owner) return MemoryOwner(new OnMemory{++latest_on_memory}, end_on_memory);
  return MemoryOwner(new Owner(std::move(owner)), [](void* ended) { delete static_cast<Owner*>(ended); });
}

class DirectEngine : public Engine {
 public:
  TensorPtr tensor_of(const Array& seen, std::shared_ptr<void> owner, bool same_layout) override {
    return translated(
        [&] { return direct::tensor_of(tensor_on(seen, true, owner_for_torch(std::move(owner))), same_layout); });
  }

  TensorPtr tensor_at(void* address, bool same_layout) override {
    return direct::tensor_of(*static_cast<const at::Tensor*>(address), same_layout);
  }

  void with_address(Tensor& tensor, const std::function<void(void* address)>& use) override {
    Held held = at_tensor_of(tensor);
    if (held->defined()) use(const_cast<at::Tensor*>(&*held));
  }

  TensorPtr gradient_of(TensorPtr tensor) override { return direct::gradient_of(std::move(tensor)); }

  uint64_t last_on_memory() noexcept override { return latest_on_memory; }
  bool is_on_memory(Tensor& tensor, uint64_t after) override {
    const Held held = at_tensor_of(tensor);
    if (!held->defined() || !held->has_storage()) return false;
    const at::DataPtr& memory = held->storage().data_ptr();
    return memory.get_deleter() == end_on_memory && static_cast<const OnMemory*>(memory.get_context())->number > after;
  }

  TensorPtr holding_memory(const TensorPtr& tensor) override {
    const Held held = at_tensor_of(*tensor);
    return translated([&] { return direct::tensor_of(held->detach(), tensor->same_layout()); });
  }

  TensorPtr operate(int32_t operation, const TensorPtr& left, const TensorPtr& right, const fpt_arg* scalar) override {
    const Held one = left ? at_tensor_of(*left) : Held(), other = right ? at_tensor_of(*right) : Held();
    Operand first{left ? &*one : nullptr, scalar}, second{right ? &*other : nullptr, scalar};
    bool same_layout = (left ? left : right)->same_layout();
    at::Tensor turned;
    return translated([&] {
      if (left && right && same_layout != right->same_layout()) {
        const bool turns_left = one->dim() < other->dim();
        turned = reversed_view(turns_left ? *one : *other);
        (turns_left ? first : second).tensor = &turned;
        if (turns_left) same_layout = !same_layout;
      }
      return direct::tensor_of(direct::operate(operation, first, second, same_layout), same_layout);
    });
  }

  void write(Tensor& target, Tensor& value) override {
    const Held written = at_tensor_of(target), given = at_tensor_of(value);
    const bool turns = value.same_layout() != target.same_layout();
    translated([&] { write_tensor(*written, turns ? reversed_view(*given) : *given, target.same_layout()); });
  }

  void require_writable(Tensor& target) override {
    const Held held = at_tensor_of(target);
    translated([&] { direct::require_writable(*held); });
  }
  void written(Tensor& target) noexcept override {
    try {
      note_write(*at_tensor_of(target));
    } catch (const std::exception&) {  // a gradient that is gone has nobody who would use it
    }
  }

  bool records_gradients(Tensor& tensor) override {
    return at_tensor_of(tensor)->requires_grad() && at::GradMode::is_enabled();
  }

  bool exchange_gradients(bool wanted) override {
    const bool before = at::GradMode::is_enabled();
    at::GradMode::set_enabled(wanted);
    return before;
  }

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

}  // namespace

Engine& engine_of_torch() {
  static DirectEngine& engine = *new DirectEngine;
  return engine;
}

}  // namespace fpt::direct
