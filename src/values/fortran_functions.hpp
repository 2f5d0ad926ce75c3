// SPDX-License-Identifier: MIT
/// Functions of torch for callers that count axes as Fortran does, and what Fortran means by making, assigning and
/// overwriting tensors. Knows nothing of Python.
///
/// A tensor of layout "reversed" has its axes in torch in reverse of their order in Fortran, one of layout "same" in
/// the same order. Axes and shapes of the arguments are those of Fortran; axes count from 1.
#pragma once

#include <cstdint>
#include <string_view>

#include "values/torch_value.hpp"

namespace fpt {

class FortranCall;

/// One of these functions, or several that differ in the function of torch they call: "reduce" of "reduce.sum".
using FortranFunction = TorchValue (*)(FortranCall& call);

/// By "fortran.reshape", "fortran.reduce.sum"; null if there is none.
[[nodiscard]] FortranFunction fortran_function(std::string_view name) noexcept;

/// Call it. FPT_ERR_ARGUMENT for axes that are not there and the like, FPT_ERR_PYTHON for what torch refuses.
/// @param name    its whole name
/// @param inputs  copies among them are taken over
TorchValue call_fortran(FortranFunction function, std::string_view name, Args inputs, bool same_layout);

/// Let a tensor have values, their graph and their requires_grad. FPT_ERR_ARGUMENT for a gradient that is not there,
/// FPT_ERR_PYTHON for what torch refuses.
/// @param what       FPT_VALUES, ...
/// @param second     target of a loss, else null
/// @param reduction  of a loss: 0 none, 1 mean, 2 sum
void let(int32_t what, const TensorPtr& target, const TensorPtr& first, const TensorPtr& second, int32_t reduction);
/// What messages call these values: "mse_loss".
[[nodiscard]] const char* name_of_values(int32_t what) noexcept;

/// Compute gradients from that of a tensor, or of a tensor of one element. The graph goes unless it is to stay.
void backward(const TensorPtr& tensor, const TensorPtr& gradient, bool keeps_graph);

}  // namespace fpt
