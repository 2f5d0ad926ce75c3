// SPDX-License-Identifier: MIT
/// A hash that is the same in all processes and builds: FNV-1a of 64 bits
/// (http://www.isthe.com/chongo/tech/comp/fnv). Knows nothing of Python.
#pragma once

#include <cstdint>
#include <string_view>

namespace fpt {

constexpr std::uint64_t hash_of(std::string_view bytes) noexcept {
  std::uint64_t hash = 14695981039346656037u;
  for (const char each : bytes) hash = (hash ^ static_cast<unsigned char>(each)) * 1099511628211u;
  return hash;
}

/// So many bits of one that a double holds exactly.
constexpr std::uint64_t exact_in_double(std::uint64_t hash) noexcept { return hash & ((std::uint64_t{1} << 48) - 1); }

}  // namespace fpt
