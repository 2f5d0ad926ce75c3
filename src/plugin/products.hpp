// SPDX-License-Identifier: MIT
/// Whether torch computes right where the program has a BLAS of its own: products, sums and decompositions of whole
/// numbers, against what torch computes without a BLAS.
#pragma once

namespace fpt::direct {

/// The function of torch that gives wrong numbers, "vdot"; null where all are right. Changes no state of torch.
const char* wrong_product();

}  // namespace fpt::direct
