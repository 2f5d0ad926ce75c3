// SPDX-License-Identifier: MIT
/// A pickle of plain values, as torch.save writes it: dicts, lists, tuples, texts, numbers and tensors. Nothing else is
/// read, and no code is run: torch's own reader trusts what it reads in many places.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "ftr/refusal.hpp"
#include "ftr/torch.hpp"

namespace ftr {

/// The bytes of a storage by its name in the archive; the same object for the same name.
using StorageOf = std::function<c10::Storage(const std::string& name)>;

/// The value. Lists and dicts have elements of any type, keys are texts or integers, and nothing contains itself.
///
/// Tensors are on the host, dense, and lie within their storages, whatever the pickle says: sizes, strides and offsets
/// are checked against the bytes that are there, and bytes of logical tensors are 0 or 1. The number of values is
/// bounded, also when those that stand in several places are counted in each, and so is the depth.
///
/// Why::format, with what is wrong, for everything else.
[[nodiscard]] c10::IValue read_plain_pickle(std::string_view bytes, const StorageOf& storage_of);

}  // namespace ftr
