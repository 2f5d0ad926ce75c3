// SPDX-License-Identifier: MIT
#include "plugin/autograd_engine.hpp"

#include <torch/csrc/autograd/engine.h>

namespace fpt::direct {
namespace {

torch::autograd::Engine& first_autograd_engine() {
  static torch::autograd::Engine& first = torch::autograd::Engine::get_default_engine();
  return first;
}

}  // namespace

void stay_with_first_engine() {
  if (&first_autograd_engine() != &torch::autograd::Engine::get_default_engine())
    torch::autograd::set_default_engine_stub(first_autograd_engine);
}

}  // namespace fpt::direct
