// SPDX-License-Identifier: MIT
/// Which of torch's engines of autograd computes gradients.
#pragma once

#include <torch/csrc/autograd/engine.h>

namespace fpt::direct {

inline torch::autograd::Engine& first_autograd_engine() {
  static torch::autograd::Engine& first = torch::autograd::Engine::get_default_engine();
  return first;
}

/// To be called before autograd is: the engine that has computed first stays that of libtorch. torch starts its threads
/// for GPUs once in a process, for the engine that computes first. A Python that is started later brings another
/// engine, which has none: gradients on a GPU would fail with an internal assertion of torch.
inline void stay_with_first_engine() {
  if (&first_autograd_engine() != &torch::autograd::Engine::get_default_engine())
    torch::autograd::set_default_engine_stub(first_autograd_engine);
}

}  // namespace fpt::direct
