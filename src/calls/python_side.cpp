// SPDX-License-Identifier: MIT
#include "calls/python_side.hpp"

#include <atomic>

#include "python/python_library.hpp"

namespace fpt {
namespace {

std::atomic<PythonSide*> provided{nullptr};

}  // namespace

PythonSide& python_side() {
  PythonSide* known = provided.load(std::memory_order_acquire);
  if (!known) {
    open_python_library();
    known = provided.load(std::memory_order_acquire);
  }
  return *known;
}

bool python_is_started() noexcept {
  const PythonSide* known = provided.load(std::memory_order_acquire);
  return known && known->is_started();
}

bool program_runs_python() noexcept {
  const PythonSide* known = provided.load(std::memory_order_acquire);
  return python_runs() && !(known && known->is_own());
}

void provide_python_side(PythonSide& made) noexcept { provided.store(&made, std::memory_order_release); }

}  // namespace fpt
