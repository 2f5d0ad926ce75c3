// SPDX-License-Identifier: MIT
/// Numbers of two bytes from and to single precision. No processor and no compiler has to know them.
#pragma once

#include <cstdint>
#include <cstring>

namespace fpt {

inline std::uint32_t bits_of(float value) noexcept {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

inline float float_of_bits(std::uint32_t bits) noexcept {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

/// Exact. `half`: the bits of a binary16 of IEEE 754.
inline float float_of_half(std::uint16_t half) noexcept {
  const std::uint32_t sign = (half & 0x8000u) << 16, exponent = (half >> 10) & 0x1fu, fraction = half & 0x3ffu;
  if (exponent == 0x1f) return float_of_bits(sign | 0x7f800000u | fraction << 13);
  if (exponent != 0) return float_of_bits(sign | (exponent + 112) << 23 | fraction << 13);
  const float value = static_cast<float>(fraction) * 0x1p-24f;  // zero or subnormal
  return sign ? -value : value;
}

/// To the nearest, ties to even, as torch does; what is too large becomes infinite.
inline std::uint16_t half_of_float(float value) noexcept {
  const std::uint32_t bits = bits_of(value), sign = bits >> 16 & 0x8000u, size = bits & 0x7fffffffu;
  if (size > 0x7f800000u) return static_cast<std::uint16_t>(sign | 0x7e00u);   // not a number
  if (size >= 0x477ff000u) return static_cast<std::uint16_t>(sign | 0x7c00u);  // 65520 and more
  if (size < 0x38800000u) {
    // below the normal numbers: the unit in the last place is 2^-24, which is that of 0.5 as a float
    const std::uint32_t rounded = bits_of(float_of_bits(size) + 0.5f) - bits_of(0.5f);
    return static_cast<std::uint16_t>(sign | rounded);
  }
  const std::uint32_t rounded = size + 0xfffu + (size >> 13 & 1u);
  return static_cast<std::uint16_t>(sign | ((rounded >> 13) - (112u << 10)));
}

/// Exact. `narrow`: the bits of a bfloat16.
inline float float_of_bfloat16(std::uint16_t narrow) noexcept {
  return float_of_bits(static_cast<std::uint32_t>(narrow) << 16);
}

/// To the nearest, ties to even, as torch does.
inline std::uint16_t bfloat16_of_float(float value) noexcept {
  const std::uint32_t bits = bits_of(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fc0u;
  return static_cast<std::uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

}  // namespace fpt
