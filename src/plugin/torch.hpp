// SPDX-License-Identifier: MIT
/// The headers of libtorch that this library needs, compiled once: they take longer than all of its own code.
#pragma once

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/boxing/KernelFunction.h>
#include <ATen/core/function_schema.h>
#include <ATen/core/grad_mode.h>
#include <ATen/core/ivalue.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/InferenceMode.h>

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
