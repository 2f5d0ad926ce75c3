// SPDX-License-Identifier: MIT
/// libtorch as the engine of tensors.
#include <ATen/PythonTorchFunctionTLS.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/sum.h>

#include <atomic>
#include <utility>

#include "plugin/direct_tensor.hpp"
#include "plugin/eager/eager_tensor.hpp"
#include "plugin/eager/own_functions.hpp"
#include "plugin/failure.hpp"
#include "plugin/parts.hpp"
#include "plugin/scalars.hpp"
#include "plugin/tensors.hpp"
#include "values/engine.hpp"

namespace fpt::direct {
namespace {

std::atomic<uint64_t> latest_on_memory{0};

/// Of a storage on memory of the caller, which has a number in place of an owner.
void end_on_memory(void* /*number*/) {}

MemoryOwner owner_for_torch(std::shared_ptr<void> owner) {
  using Owner = std::shared_ptr<void>;
  if (!owner) return MemoryOwner(reinterpret_cast<void*>(++latest_on_memory), end_on_memory);
  return MemoryOwner(new Owner(std::move(owner)), [](void* ended) { delete static_cast<Owner*>(ended); });
}

c10::IValue value_for(const TorchValue& value) {
  return std::visit(
      [](const auto& it) -> c10::IValue {
        using Type = std::decay_t<decltype(it)>;
        if constexpr (std::is_same_v<Type, std::monostate>) {
          return {};
        } else if constexpr (std::is_same_v<Type, TensorPtr>) {
          const Held held = at_tensor_of(*it);
          return held->defined() ? at::Tensor(*held) : throw NotHere();
        } else if constexpr (std::is_same_v<Type, std::vector<TensorPtr>>) {
          c10::List<at::Tensor> list;
          for (const TensorPtr& each : it) list.push_back(value_for(each).toTensor());
          return list;
        } else if constexpr (std::is_same_v<Type, std::complex<double>>) {
          return c10::complex<double>(it);
        } else {
          return it;
        }
      },
      value);
}

TorchValue value_in(const c10::IValue& result, bool same_layout) {
  if (result.isTensor() && result.toTensor().defined()) return direct::tensor_of(result.toTensor(), same_layout);
  if (result.isTuple()) return value_in(result.toTupleRef().elements()[0], same_layout);
  if (result.isBool()) return result.toBool();
  if (result.isInt()) return result.toInt();
  if (result.isIntList()) return result.toIntVector();
  return {};
}

class DirectEngine : public Engine {
 public:
  std::optional<TorchValue> call(std::string_view function, const TorchArguments& given, bool same_layout) override {
    return translated([&]() -> std::optional<TorchValue> {
      try {
        bool requires_grad = false;  // of what is made; operators know nothing of it
        FunctionCall call;
        call.values.reserve(given.size());
        call.names.reserve(given.size());
        for (const TorchArgument& each : given)
          if (each.name == "requires_grad")
            requires_grad = std::get<bool>(each.value);
          else
            call.add(value_for(each.value), each.name);
        const c10::IValue result = call_function(function, call);
        if (requires_grad) result.toTensor().set_requires_grad(true);
        return is_in_place(function) ? TorchValue() : value_in(result, same_layout);
      } catch (const NotHere&) {
        return std::nullopt;
      } catch (...) {
        rethrow_as_python();
      }
    });
  }

  TensorFacts describe(Tensor& tensor) override {
    const Held held = at_tensor_of(tensor);
    return translated([&] { return facts_of(*held); });
  }

  TensorFlags flags_of(Tensor& tensor) override {
    const Held held = at_tensor_of(tensor);
    return translated([&] { return direct::flags_of(*held); });
  }

  Range memory_of(Tensor& tensor) override {
    const Held held = at_tensor_of(tensor);
    return translated([&] {
      try {
        const at::Storage& storage = held->storage();
        const auto* begin = static_cast<const char*>(storage.data());
        return Range{begin, begin + storage.nbytes()};
      } catch (...) {
        rethrow_as_python();
      }
    });
  }

  void written(Tensor& tensor) override {
    const Held held = at_tensor_of(tensor);
    // what inference mode made is kept for no gradient, and has no counter
    if (!held->is_inference()) held->unsafeGetTensorImpl()->bump_version();
  }

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

  TensorPtr gradient_of(Tensor& tensor) override {
    const at::Tensor& gradient = at_tensor_of(tensor)->grad();
    return gradient.defined() ? direct::tensor_of(gradient, tensor.same_layout()) : nullptr;
  }

  uint64_t last_on_memory() noexcept override { return latest_on_memory; }
  bool is_on_memory(Tensor& tensor, uint64_t after) override {
    const Held held = at_tensor_of(tensor);
    if (!held->defined() || !held->has_storage()) return false;
    const at::DataPtr& memory = held->storage().data_ptr();
    return memory.get_deleter() == end_on_memory && reinterpret_cast<uint64_t>(memory.get_context()) > after;
  }

  TensorPtr operate(int32_t operation, Tensor* left, Tensor* right, const fpt_arg* scalar, bool same_layout) override {
    const Held first = left ? at_tensor_of(*left) : Held(), second = right ? at_tensor_of(*right) : Held();
    try {  // not translated(): warnings are heard since the first tensor of the thread was made
      if (operation == copy_operation) return first->copy_(*second), nullptr;
      return direct::tensor_of(!right  ? computed(operation, *first, number_of(*scalar))
                               : !left ? computed_from_right(operation, number_of(*scalar), *second)
                                       : computed(operation, *first, *second),
                               same_layout);
    } catch (...) {
      rethrow_as_python();
    }
  }

  TensorPtr values(int32_t what, Tensor& first, Tensor* second, int32_t reduction) override {
    if (at::impl::torch_function_mode_enabled()) return nullptr;
    const Held tensor = at_tensor_of(first), target = second ? at_tensor_of(*second) : Held();
    const auto made = [&](at::Tensor result) { return direct::tensor_of(std::move(result), first.same_layout()); };
    try {
      if (what == FPT_SUM) return made(at::sum(*tensor));
      if (what == FPT_MEAN) return made(at::mean(*tensor));
      // Python warns of a target of another shape
      if (what != FPT_MSE_LOSS || tensor->sizes() != target->sizes()) return nullptr;
      return made(at::mse_loss(*tensor, *target, reduction));
    } catch (...) {
      rethrow_as_python();
    }
  }
  bool backward(Tensor& tensor, Tensor* gradient, bool keeps_graph) override {
    if (at::impl::torch_function_mode_enabled()) return false;
    try {
      direct::compute_gradients(*at_tensor_of(tensor), gradient ? *at_tensor_of(*gradient) : at::Tensor(), keeps_graph);
      return true;
    } catch (...) {
      rethrow_as_python();
    }
  }

  bool computes_gradients() override { return at::GradMode::is_enabled(); }
  void compute_gradients(bool wanted) override { at::GradMode::set_enabled(wanted); }

  void* enter_autocast(const std::string& device, const std::string& dtype) override {
    return python_engine().enter_autocast(device, dtype);
  }

  bool leave_scope(const std::function<void()>& free, const std::vector<void*>& autocasts) override {
    if (!autocasts.empty()) return python_engine().leave_scope(free, autocasts);
    return free(), true;
  }
};

}  // namespace

Engine& engine_of_torch() {
  static DirectEngine& engine = *new DirectEngine;
  return engine;
}

}  // namespace fpt::direct
