// SPDX-License-Identifier: MIT
/// What the extension for recordings, which is compiled with torch, tells of it to the half with Python, which is not:
/// five functions that look and change nothing. Knows nothing of Python.
#pragma once

#include <cstdint>

namespace fpt {

/// What decides in torch, beside the arguments of an operator, on its numbers and on the type of its results: modes of
/// this thread, and two of the process, default type and deterministic algorithms.
struct TorchModes {
  bool gradients = true;
  bool inference = false;
  bool autocast_host = false, autocast_gpu = false;
  bool deterministic = false;
  int8_t default_type = 6;  ///< c10::ScalarType: float32
  int64_t functions = 0;    ///< modes of __torch_function__, such as a default device

  bool operator==(const TorchModes& other) const noexcept {
    return gradients == other.gradients && inference == other.inference && autocast_host == other.autocast_host &&
           autocast_gpu == other.autocast_gpu && deterministic == other.deterministic &&
           default_type == other.default_type && functions == other.functions;
  }
  /// True if only gradients may be other than torch has them at its start.
  bool is_plain() const noexcept {
    TorchModes plain;
    plain.gradients = gradients;
    return *this == plain;
  }
};

/// A tensor as it is at this moment.
struct TensorLook {
  const void* data;
  const int64_t *sizes, *strides;  ///< of torch; strides in elements
  int64_t rank;
  int8_t type;        ///< c10::ScalarType
  bool has_autograd;  ///< it requires a gradient, did so, or holds one: no operation without gradients does that
};

/// Tensors are objects of Python, whose lock is held; 2 to 10 ns, where Python takes 30 to 50.
struct TensorLooks {
  /// False for a tensor without memory.
  bool (*look)(void* tensor, TensorLook& found) noexcept;
  /// Number of in-place changes; 0 for one of inference mode, which counts none.
  int64_t (*version)(void* tensor) noexcept;
  /// Whether the negative bit is set.
  bool (*is_negative)(void* tensor) noexcept;
  bool (*is_inference_mode)() noexcept;
  TorchModes (*modes)() noexcept;  ///< without the lock
};

/// Name of the capsule in which the extension has them.
constexpr const char* tensor_looks_capsule = "ftn_pytorch.tensor_looks";

}  // namespace fpt
