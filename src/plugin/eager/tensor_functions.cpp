// SPDX-License-Identifier: MIT
/// The part of the plug-in's table that is for tensors of the program, one call each.
#include "direct/direct_value.hpp"
#include "plugin/answer.hpp"
#include "plugin/eager/eager_tensor.hpp"
#include "plugin/eager/functions.hpp"
#include "plugin/eager/tensor_training.hpp"
#include "plugin/table.hpp"

namespace fpt::direct {
namespace {

fpt_status call_of_function(const char* name, int64_t name_len, int32_t same_layout, const fpt_arg inputs[],
                            const fpt_direct_operand tensors[], int32_t ninputs, fpt_direct_tensor** tensor,
                            fpt_direct_answer* answer) {
  const std::string_view function(name, static_cast<std::size_t>(name_len));
  return guard_or_elsewhere([&] {
    try {
      c10::IValue result = call_function(function, same_layout != 0, inputs, tensors, ninputs);
      if (tensor && result.isTensor() && result.toTensor().defined()) {
        *tensor = new fpt_direct_tensor{std::move(result).toTensor()};
        return true;
      }
      std::unique_ptr<Answer> made = take_answer();
      made->set(std::move(result), concat(function, " of torch"));
      hand_out(std::move(made), *answer);
      return true;
    } catch (const NotHere&) {
      return false;
    }
  });
}

constexpr fpt_direct_tensors functions = {
    [](const fpt_direct_value* memory, void* owner, void (*release)(void*), fpt_direct_tensor** tensor) {
      return guard([&] { *tensor = make_tensor(*memory, MemoryOwner(owner, release)).release(); });
    },
    [](fpt_direct_tensor* tensor) { delete tensor; },
    [](fpt_direct_tensor* tensor, fpt_direct_value* memory) {
      return guard([&] { set_memory(*memory, memory_of(*tensor)); });
    },
    [](fpt_direct_tensor* tensor) { return static_cast<void*>(&tensor->now()); },
    [](void* address, fpt_direct_tensor** tensor) {
      return guard([&] { *tensor = new fpt_direct_tensor{*static_cast<const at::Tensor*>(address)}; });
    },
    [] { return last_on_memory(); },
    [](const fpt_direct_tensor* tensor, uint64_t after) {
      return static_cast<int32_t>(is_on_memory(tensor->now(), after));
    },
    [](const fpt_direct_tensor* tensor, fpt_direct_tensor** detached) {
      return guard([&] { *detached = new fpt_direct_tensor{tensor->now().detach()}; });
    },
    [](const fpt_direct_tensor* tensor, fpt_direct_tensor** gradient) {
      return guard([&] { *gradient = gradient_of(tensor->now()).release(); });
    },
    [](const fpt_direct_tensor* tensor) {
      return static_cast<int32_t>(tensor->now().requires_grad() && at::GradMode::is_enabled());
    },
    [] { return static_cast<int32_t>(at::GradMode::is_enabled()); },
    [](int32_t wanted) {
      const bool before = at::GradMode::is_enabled();
      at::GradMode::set_enabled(wanted != 0);
      return static_cast<int32_t>(before);
    },
    [](int32_t operation, const fpt_direct_operand* left, const fpt_direct_operand* right, int32_t same_layout,
       fpt_direct_tensor** result) {
      return guard([&] { *result = operate(operation, *left, *right, same_layout != 0).release(); });
    },
    [](fpt_direct_tensor* target, const fpt_direct_operand* value, int32_t same_layout) {
      return guard([&] { write_tensor(target->now(), *value, same_layout != 0); });
    },
    [](const fpt_direct_tensor* target) { return guard([&] { require_writable(target->now()); }); },
    [](fpt_direct_tensor* target) { note_write(target->now()); },
    call_of_function,
    [](const fpt_direct_answer* answer, int32_t index, int32_t on_host, fpt_direct_tensor** tensor) {
      return guard([&] {
        const at::Tensor& held = static_cast<Answer*>(answer->owner)->tensors[static_cast<std::size_t>(index)];
        const at::AutoGradMode gradients(true);  // a copy goes on with the graph, whatever the mode is by now
        *tensor = new fpt_direct_tensor{on_host ? held.to(at::kCPU) : held};
      });
    },
    [](const fpt_direct_optimizer* settings, const fpt_direct_operand* tensors, int32_t ntensors,
       fpt_direct_training** training) {
      return guard_or_elsewhere([&] {
        *training = make_training(*settings, tensors, ntensors).release();
        return *training != nullptr;
      });
    },
    [](fpt_direct_training* training) { delete training; },
    [](fpt_direct_training* training) {
      return guard_or_elsewhere([&] {
        try {
          return step(*training);
        } catch (...) {
          rethrow_as_python("step");
        }
      });
    },
    [](fpt_direct_training* training) { return guard([&] { training->optimizer.clear_gradients(); }); },
    [](fpt_direct_training* training) { return &training->optimizer.settings(); },
    [](fpt_direct_training* training, int32_t index, double* steps, fpt_direct_tensor* state[3]) {
      return guard([&] {
        const Moments& kept = training->optimizer.moments()[static_cast<std::size_t>(index)];
        *steps = kept.steps;
        const at::Tensor* tensors[] = {&kept.first, &kept.second, &kept.largest};
        for (int i = 0; i < 3; ++i) state[i] = tensors[i]->defined() ? new fpt_direct_tensor{*tensors[i]} : nullptr;
      });
    },
};

}  // namespace

fpt_direct_tensors tensor_functions() noexcept { return functions; }

}  // namespace fpt::direct
