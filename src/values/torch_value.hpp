// SPDX-License-Identifier: MIT
/// What passes between this library and functions of torch, whatever calls them. Knows nothing of Python.
#pragma once

#include <complex>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "arrays/arg.hpp"
#include "values/tensor.hpp"

namespace fpt {

/// What a function of torch takes or gives; numbers in a row are a tuple in Python.
using TorchValue = std::variant<std::monostate, bool, int64_t, double, std::complex<double>, std::string, TensorPtr,
                                std::vector<int64_t>, std::vector<TensorPtr>>;

/// Whether a function of torch changes its first argument, and returns it: "Tensor.add_".
inline bool is_in_place(std::string_view function) noexcept {
  return function.back() == '_' && function.substr(function.size() - 2) != "__";
}

/// Those with a name come last.
struct TorchArgument {
  TorchValue value;
  std::string_view name{};  // NOLINT(readability-redundant-member-init): GCC misses it in {{tensor}}
};
using TorchArguments = std::vector<TorchArgument>;

/// What a tensor is for autograd, and whether torch can change it.
struct TensorFlags {
  bool requires_grad = false;
  bool has_graph = false;     ///< it is the result of an operation whose gradient is computed
  bool is_view = false;       ///< of another tensor, with whose graph it is
  bool is_of_leaf = false;    ///< and that one is a leaf
  bool is_inference = false;  ///< made in inference mode, and nothing can change it outside of that
  bool is_of_torch = true;    ///< else an array of NumPy
};

/// A tensor as torch sees it, axes in its order.
struct TensorFacts : TensorFlags {
  std::string dtype;  ///< "float32"
  std::vector<int64_t> shape;

  /// Real or complex.
  bool is_inexact() const noexcept {
    return dtype.find("loat") != std::string::npos || dtype.find("omplex") != std::string::npos;
  }
  int64_t rank() const noexcept { return static_cast<int64_t>(shape.size()); }
};

/// "float32 (3, 10), Fortran (10, 3)", as messages describe a tensor.
[[nodiscard]] FPT_API std::string text_of(const TensorFacts& facts, bool same_layout);

/// A number, logical or text by value, without failure.
[[nodiscard]] TorchValue torch_value(const fpt_arg& arg);

/// What a failed function was called with, a line for each argument; empty without arguments.
[[nodiscard]] FPT_API std::string described(Args inputs, bool same_layout);

}  // namespace fpt
