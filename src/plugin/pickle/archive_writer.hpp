// SPDX-License-Identifier: MIT
/// The archive that torch.save writes of one plain value. The other direction is ftr/plain_archive.hpp.
#pragma once

#include <functional>

#include "plugin/pickle/pickle_writer.hpp"

namespace fpt::direct {

/// Receives the bytes of the archive, one after the other.
using WriteBytes = std::function<void(const void* data, std::size_t size)>;

/// Tensors may be on a device; a storage is written once, whole, however many tensors share it.
void write_plain_archive(const WrittenPickle& pickle, const WriteBytes& write);

/// A dict that takes any value.
inline c10::impl::GenericDict new_plain_dict() {
  return c10::impl::GenericDict(c10::AnyType::get(), c10::AnyType::get());
}

}  // namespace fpt::direct
