// SPDX-License-Identifier: MIT
#include "values/engine.hpp"

#include <atomic>
#include <mutex>
#include <set>
#include <string>

#include "base/error.hpp"
#include "observe/log.hpp"
#include "observe/observe.hpp"
#include "python/python_library.hpp"

namespace fpt {
namespace {

std::atomic<Engine*> python{nullptr}, opened{nullptr};

}  // namespace

TorchValue call_torch(std::string_view function, const TorchArguments& given, bool same_layout) {
  if (std::optional<TorchValue> result = engine().call(function, given, same_layout)) return std::move(*result);
  tell_of_python(function);
  std::optional<TorchValue> result = python_engine().call(function, given, same_layout);
  if (!result) fail(FPT_ERR_INTERNAL, function, " of torch is called neither by libtorch nor by Python");
  return std::move(*result);
}

TensorPtr call_for_tensor(std::string_view function, const TorchArguments& given, bool same_layout) {
  TorchValue result = call_torch(function, given, same_layout);
  if (auto* tensor = std::get_if<TensorPtr>(&result)) return std::move(*tensor);
  fail(FPT_ERR_RESULT_TYPE, function, " of torch gave no tensor");
}

void tell_of_python(std::string_view function) {
  if (!logs(LogLevel::info)) return;
  static std::mutex& mutex = *new std::mutex;
  static auto& told = *new std::set<std::string, std::less<>>;
  const std::lock_guard<std::mutex> lock(mutex);
  if (told.emplace(function).second) log(LogLevel::info, concat(function, " of torch goes to Python"));
}

Engine& engine() {
  if (Engine* known = opened_engine()) return *known;
  start_observing();
  Engine* found = libtorch_engine();
  if (!found) found = &python_engine();
  opened.store(found, std::memory_order_release);
  return *found;
}

Engine& engine_of(Tensor& tensor) {
  Engine& ours = engine();  // Python needs no tensor of memory to be asked
  const bool is_python = &ours == python.load(std::memory_order_acquire);
  return is_python || tensor.in_torch().is_of_libtorch() ? ours : python_engine();
}

Engine& engine_of(Tensor& one, Tensor& other) {
  Engine &first = engine_of(one), &second = engine_of(other);
  return &first == &engine() ? second : first;
}

TensorFacts facts_of(const TensorPtr& tensor) { return engine_of(*tensor).describe(*tensor); }

Engine* opened_engine() noexcept { return opened.load(std::memory_order_acquire); }

Engine& python_engine() {
  Engine* known = python.load(std::memory_order_acquire);
  if (!known) {
    open_python_library();
    known = python.load(std::memory_order_acquire);
  }
  return *known;
}

void provide_python_engine(Engine& made) noexcept { python.store(&made, std::memory_order_release); }

}  // namespace fpt
