// SPDX-License-Identifier: MIT
#include "values/engine.hpp"

#include <atomic>

#include "python/python_library.hpp"

namespace fpt {
namespace {

std::atomic<Engine*> provided{nullptr};

}  // namespace

Engine& engine() {
  Engine* known = opened_engine();
  if (!known) {
    open_python_library();
    known = opened_engine();
  }
  return *known;
}

Engine* opened_engine() noexcept { return provided.load(std::memory_order_acquire); }

void provide_engine(Engine& made) noexcept { provided.store(&made, std::memory_order_release); }

}  // namespace fpt
