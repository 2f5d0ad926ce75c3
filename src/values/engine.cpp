// SPDX-License-Identifier: MIT
#include "values/engine.hpp"

#include <atomic>

#include "python/python_library.hpp"

namespace fpt {
namespace {

std::atomic<Engine*> python{nullptr}, opened{nullptr};

}  // namespace

Engine& engine() {
  if (Engine* known = opened_engine()) return *known;
  Engine* found = libtorch_engine();
  if (!found) found = &python_engine();
  opened.store(found, std::memory_order_release);
  return *found;
}

Engine& engine_of(Tensor& tensor) {
  Engine& ours = engine();  // Python needs no tensor of memory to be asked
  return libtorch_engine() && !tensor.in_torch().is_of_libtorch() ? python_engine() : ours;
}

Engine& engine_of(Tensor& one, Tensor& other) {
  Engine &first = engine_of(one), &second = engine_of(other);
  return &first == &engine() ? second : first;
}

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
