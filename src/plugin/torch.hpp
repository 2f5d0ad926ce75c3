// SPDX-License-Identifier: MIT
/// The headers of libtorch that this library needs, compiled once: they take longer than all of its own code.
#pragma once

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/InferenceMode.h>
#include <torch/csrc/jit/api/function_impl.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/serialization/import.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <vector>

#include "arrays/arg.hpp"
#include "arrays/array.hpp"
#include "arrays/copy.hpp"
#include "arrays/scalar.hpp"
#include "base/error.hpp"
