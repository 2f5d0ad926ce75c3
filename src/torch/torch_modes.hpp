// SPDX-License-Identifier: MIT
/// What decides in torch, beside the arguments of an operator, on its numbers and on the type of its results.
#pragma once

#include <cstdint>

namespace fpt {

/// Modes of this thread, and two of the process: default type and deterministic algorithms.
struct TorchModes {
  bool gradients = true;
  bool inference = false;
  bool autocast_host = false, autocast_gpu = false;
  bool deterministic = false;
  int8_t default_type = 6;  ///< c10::ScalarType: float32
  int64_t functions = 0;    ///< modes of __torch_function__, such as a default device

  bool operator==(const TorchModes& other) const noexcept;
  /// True if only gradients may be other than torch has them at its start.
  bool is_plain() const noexcept;
};

/// The modes now, found in 30 ns without the interpreter lock. False where torch does not tell, or is not there.
bool read_torch_modes(TorchModes& modes) noexcept;

/// Look once for what tells them, after torch was imported; with the interpreter lock. FTN_PYTORCH_CPP_FUNCTIONS=0: it
/// is not there.
void find_torch_modes();

}  // namespace fpt
