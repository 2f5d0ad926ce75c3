// SPDX-License-Identifier: MIT
/// A tensor into memory of the program, and into all that takes results. Knows nothing of Python.
#pragma once

#include <memory>

#include "calls/answer.hpp"
#include "values/tensor.hpp"

namespace fpt {

/// Copy a tensor into an output, as fpt_tensor_copy() says. Memory of the host needs no torch.
void copy_tensor(Tensor& tensor, const fpt_arg& output, bool cast);

/// A tensor as the result of a call.
[[nodiscard]] std::shared_ptr<Answer> answer_of(Tensor& tensor, const CallName& call);

}  // namespace fpt
