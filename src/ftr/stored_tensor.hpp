// SPDX-License-Identifier: MIT
/// Tensors out of what a pickle says of them: element types by the names of their storages, and views that are checked.
#pragma once

#include <optional>
#include <string_view>

#include "ftr/refusal.hpp"
#include "ftr/torch.hpp"

namespace ftr {

/// Element type of "FloatStorage"; none for other names.
[[nodiscard]] std::optional<at::ScalarType> dtype_of_storage(std::string_view name) noexcept;

/// Element type of "uint16", among those that have no storage of their own; none for other names.
[[nodiscard]] std::optional<at::ScalarType> dtype_without_storage(std::string_view name) noexcept;

/// "FloatStorage" or "uint16": the inverse of both. Null for types that are not stored.
[[nodiscard]] const char* stored_name_of(at::ScalarType dtype) noexcept;

/// "float32" and so on, for all types that files have; Why::format for another name.
[[nodiscard]] at::ScalarType read_dtype(std::string_view name);
/// The inverse; torch's own name for types that files do not have.
[[nodiscard]] const char* name_of(at::ScalarType dtype) noexcept;
/// "float32 (3, 4)"
[[nodiscard]] std::string described(const at::Tensor& tensor);

/// A dense tensor on the host that shares the storage. Offset and strides count elements.
///
/// Why::format if it does not lie within the storage, if a number is negative or too large, and if a byte of a
/// logical tensor is neither 0 nor 1.
[[nodiscard]] at::Tensor tensor_in_storage(const c10::Storage& storage, at::ScalarType dtype, int64_t offset,
                                           at::IntArrayRef sizes, at::IntArrayRef strides);

}  // namespace ftr
