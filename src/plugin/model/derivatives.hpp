// SPDX-License-Identifier: MIT
/// Tangents, adjoints and Jacobians of a method of a TorchScript model: what tensors/derivatives.py has for functions
/// of Python.
#pragma once

#include "plugin/direct_answer.hpp"
#include "plugin/model/method.hpp"

namespace fpt::direct {

/// What "ftn_pytorch_adjoint:1:forward" asks for.
struct Derivative {
  enum class Kind { tangent, adjoint, jacobian } kind;
  int32_t directions;         ///< so many arguments come before those of the method
  std::string_view function;  ///< as the caller names it
};

/// None for another name.
[[nodiscard]] std::optional<Derivative> derivative_named(std::string_view name);

/// Compute it; gradients of parameters stay as they are, and no argument is changed.
///
/// @param inputs  directions, then the arguments of the method
/// @param answer  receives the derivatives
/// FPT_ERR_ARGUMENT, FPT_ERR_SHAPE, FPT_ERR_DTYPE where directions do not fit, or torch cannot follow the method.
void derive(const Derivative& wanted, const Settings& settings, Method& method, const torch::jit::Module& module,
            Inputs inputs, DirectAnswer& answer);

}  // namespace fpt::direct
