// SPDX-License-Identifier: MIT
/// What torch.save writes of one plain value: the archive, with its pickle and the memory of its tensors.
#pragma once

#include <functional>

#include "ftr/torch.hpp"

namespace ftr {

/// Bytes of an archive from a position on; fewer at its end.
using ReadBytes = std::function<std::size_t(uint64_t position, void* to, std::size_t count)>;

/// Of tensors: read, or left where they are, where a digest of the file tells enough.
enum class Numbers { read, left };

/// The value, as read_plain_pickle makes it. No record takes more memory than the archive has bytes.
///
/// Why::format for everything else. What torch's own reader throws of an archive is no Refusal.
[[nodiscard]] c10::IValue read_plain_archive(const ReadBytes& read, std::size_t length,
                                             Numbers numbers = Numbers::read);

}  // namespace ftr
