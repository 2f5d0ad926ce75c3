// SPDX-License-Identifier: MIT
#include "values/engine.hpp"

#include <atomic>

#include "direct/direct_engine.hpp"
#include "python/python_library.hpp"

namespace fpt {
namespace {

std::atomic<Engine*> python{nullptr}, direct{nullptr};

}  // namespace

Engine& engine() {
  if (Engine* known = opened_engine()) return *known;
  if (Engine* found = direct_engine()) {
    direct.store(found, std::memory_order_release);
    return *found;
  }
  open_python_library();
  return *python.load(std::memory_order_acquire);
}

Engine* opened_engine() noexcept {
  Engine* known = python.load(std::memory_order_acquire);
  return known ? known : direct.load(std::memory_order_acquire);
}

bool python_computes() noexcept { return python.load(std::memory_order_acquire) != nullptr; }

void provide_engine(Engine& made) noexcept { python.store(&made, std::memory_order_release); }

}  // namespace fpt
