// SPDX-License-Identifier: MIT
/// Functions of torch for callers that count axes as Fortran does, and what Fortran means by making, assigning and
/// overwriting tensors. Knows nothing of Python.
///
/// A tensor of layout "reversed" has its axes in torch in reverse of their order in Fortran, one of layout "same" in
/// the same order. Axes and shapes of the arguments are those of Fortran; axes count from 1.
#pragma once

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

}  // namespace fpt
