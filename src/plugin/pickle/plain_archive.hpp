// SPDX-License-Identifier: MIT
/// What torch.save writes of one plain value: the archive, with its pickle and the memory of its tensors.
#pragma once

#include <functional>

#include "plugin/pickle/pickle_writer.hpp"
#include "plugin/torch.hpp"

namespace fpt::direct {

/// Bytes of an archive from a position on; fewer at its end.
using ReadBytes = std::function<std::size_t(uint64_t position, void* to, std::size_t count)>;
/// Receives the bytes of the archive, one after the other.
using WriteBytes = std::function<void(const void* data, std::size_t size)>;

/// Of tensors: read, or left where they are, where a digest of the file tells enough.
enum class Numbers { read, left };

/// The value, as read_plain_pickle makes it. No record takes more memory than the archive has bytes.
///
/// FPT_ERR_FORMAT for everything else. What torch's own reader throws of an archive is no Error.
[[nodiscard]] c10::IValue read_plain_archive(const ReadBytes& read, std::size_t length,
                                             Numbers numbers = Numbers::read);

/// Tensors may be on a device; a storage is written once, whole, however many tensors share it.
void write_plain_archive(const WrittenPickle& pickle, const WriteBytes& write);

/// A dict that takes any value.
inline c10::impl::GenericDict new_plain_dict() {
  return c10::impl::GenericDict(c10::AnyType::get(), c10::AnyType::get());
}

}  // namespace fpt::direct
