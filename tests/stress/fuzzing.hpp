// SPDX-License-Identifier: MIT
/// What fuzz_abi needs beside the calls themselves: memory that is watched, and a look at texts.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "ftn_pytorch.h"

using Bytes = std::vector<unsigned char>;

inline bool is_utf8(const char* text, int64_t length) {
  for (int64_t i = 0; i < length;) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const int more = lead < 0x80 ? 0 : lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : lead >= 0xC2 ? 1 : -1;
    if (more < 0 || i + more >= length) return false;
    for (int k = 1; k <= more; ++k)
      if ((text[i + k] & 0xC0) != 0x80) return false;
    i += more + 1;
  }
  return true;
}

// Lengths and counts in the types of the C interface.
inline int64_t length_of(const char* text) { return static_cast<int64_t>(std::strlen(text)); }
inline int32_t count_of(const std::vector<fpt_arg>& args) { return static_cast<int32_t>(args.size()); }

/// Bytes of an element of each type.
constexpr int sizes[] = {0, 1, 1, 2, 4, 8, 4, 8, 8, 16, 0, 1, 2, 2, 2, 4, 8};

/// Memory with a description; bytes that the description does not name must never change.
struct Block {
  Bytes memory, mask;  // mask: 1 where an element is
  Bytes before;
  fpt_arg arg;
  bool may_change = false;
};

/// Say which bytes of a block are elements of an array.
inline void mark(Block& b, int size, int32_t rank, const int64_t* extents, const int64_t* strides, int64_t offset) {
  if (rank < 0 || rank > FPT_MAX_RANK) return;
  if (rank == 0) {
    std::memset(b.mask.data() + offset, 1, static_cast<std::size_t>(size));
    return;
  }
  for (int64_t i = 0; i < extents[rank - 1]; ++i)
    mark(b, size, rank - 1, extents, strides, offset + i * strides[rank - 1]);
}
