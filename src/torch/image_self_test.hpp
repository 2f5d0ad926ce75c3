// SPDX-License-Identifier: MIT
/// Whether tensors of the torch that is there can be known by their images, found by trying. With the interpreter lock.
#pragma once

#include "arrays/array.hpp"
#include "torch/dlpack.hpp"

namespace fpt::torch_access {

/// An array of 2 x 3 numbers in single precision with a gap after each row. Its memory lives as long as the process.
Array self_test_array();

/// Everything that may be done to a tensor must show in its image; then TensorImage may be used from now on, and this
/// is true. Whether tensors may be moved is tried on top of that.
bool learn_images(const dlpack::ExchangeApi& api);

}  // namespace fpt::torch_access
