// SPDX-License-Identifier: MIT
/// The digest SHA-256 (FIPS 180-4) of bytes that come in pieces.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace ftr {

class Sha256 {
 public:
  void update(const void* data, std::size_t size) noexcept;
  void update(std::string_view bytes) noexcept { update(bytes.data(), bytes.size()); }

  /// The digest of all bytes so far, to be asked for once.
  [[nodiscard]] std::array<unsigned char, 32> digest() noexcept;

 private:
  std::array<uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<unsigned char, 64> block_{};
  std::size_t filled_ = 0;
  uint64_t length_ = 0;
};

}  // namespace ftr
