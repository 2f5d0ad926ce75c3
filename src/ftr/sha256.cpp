// SPDX-License-Identifier: MIT
#include "ftr/sha256.hpp"

#include <algorithm>
#include <cstring>

#if defined(__x86_64__) && defined(__GNUC__)
#include <cpuid.h>
#include <immintrin.h>
#define FTR_SHA_INSTRUCTIONS
#endif

namespace ftr {
namespace {

constexpr std::size_t block_size = 64;

alignas(16) constexpr uint32_t constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

constexpr uint32_t rotated(uint32_t x, int by) noexcept { return x >> by | x << (32 - by); }

uint32_t big_endian(const unsigned char* bytes) noexcept {
  return uint32_t{bytes[0]} << 24 | uint32_t{bytes[1]} << 16 | uint32_t{bytes[2]} << 8 | uint32_t{bytes[3]};
}

/// Section 6.2.2, with the names of the standard.
void add_blocks(uint32_t* state, const unsigned char* data, std::size_t blocks) noexcept {
  for (; blocks-- > 0; data += block_size) {
    uint32_t w[64];
    for (std::size_t t = 0; t < 16; ++t) w[t] = big_endian(data + 4 * t);
    for (int t = 16; t < 64; ++t) {
      const uint32_t s0 = rotated(w[t - 15], 7) ^ rotated(w[t - 15], 18) ^ w[t - 15] >> 3;
      const uint32_t s1 = rotated(w[t - 2], 17) ^ rotated(w[t - 2], 19) ^ w[t - 2] >> 10;
      w[t] = s1 + w[t - 7] + s0 + w[t - 16];
    }
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
    uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
    for (int t = 0; t < 64; ++t) {
      const uint32_t sum1 = rotated(e, 6) ^ rotated(e, 11) ^ rotated(e, 25);
      const uint32_t t1 = h + sum1 + ((e & f) ^ (~e & g)) + constants[t] + w[t];
      const uint32_t sum0 = rotated(a, 2) ^ rotated(a, 13) ^ rotated(a, 22);
      const uint32_t t2 = sum0 + ((a & b) ^ (a & c) ^ (b & c));
      h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
    }
    state[0] += a, state[1] += b, state[2] += c, state[3] += d;
    state[4] += e, state[5] += f, state[6] += g, state[7] += h;
  }
}

#ifdef FTR_SHA_INSTRUCTIONS

bool has_instructions() noexcept {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_SSSE3) || !(c & bit_SSE4_1)) return false;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & bit_SHA);
}

/// The same by the instructions of the processor, which take four rounds at a time and keep the state as ABEF and CDGH.
__attribute__((target("sha,ssse3,sse4.1"))) void add_blocks_by_instructions(uint32_t* state, const unsigned char* data,
                                                                            std::size_t blocks) noexcept {
  const __m128i order = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
  auto* const words = reinterpret_cast<__m128i*>(state);
  const __m128i cdab = _mm_shuffle_epi32(_mm_loadu_si128(words), 0xb1);
  const __m128i efgh = _mm_shuffle_epi32(_mm_loadu_si128(words + 1), 0x1b);
  __m128i abef = _mm_alignr_epi8(cdab, efgh, 8), cdgh = _mm_blend_epi16(efgh, cdab, 0xf0);
  for (; blocks-- > 0; data += block_size) {
    const __m128i abef_before = abef, cdgh_before = cdgh;
    __m128i w[4];
    for (int i = 0; i < 4; ++i)
      w[i] = _mm_shuffle_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(data) + i), order);
    for (int i = 0; i < 16; ++i) {
      if (i >= 4) {
        const __m128i last = w[(i + 3) % 4];
        const __m128i sum =
            _mm_add_epi32(_mm_sha256msg1_epu32(w[i % 4], w[(i + 1) % 4]), _mm_alignr_epi8(last, w[(i + 2) % 4], 4));
        w[i % 4] = _mm_sha256msg2_epu32(sum, last);
      }
      const __m128i wk = _mm_add_epi32(w[i % 4], _mm_load_si128(reinterpret_cast<const __m128i*>(constants) + i));
      cdgh = _mm_sha256rnds2_epu32(cdgh, abef, wk);
      abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(wk, 0x0e));
    }
    abef = _mm_add_epi32(abef, abef_before);
    cdgh = _mm_add_epi32(cdgh, cdgh_before);
  }
  const __m128i feba = _mm_shuffle_epi32(abef, 0x1b), dchg = _mm_shuffle_epi32(cdgh, 0xb1);
  _mm_storeu_si128(words, _mm_blend_epi16(feba, dchg, 0xf0));
  _mm_storeu_si128(words + 1, _mm_alignr_epi8(dchg, feba, 8));
}

#endif

void add(std::array<uint32_t, 8>& state, const unsigned char* data, std::size_t blocks) noexcept {
#ifdef FTR_SHA_INSTRUCTIONS
  static const bool by_instructions = has_instructions();
  if (by_instructions) return add_blocks_by_instructions(state.data(), data, blocks);
#endif
  add_blocks(state.data(), data, blocks);
}

}  // namespace

void Sha256::update(const void* data, std::size_t size) noexcept {
  const auto* bytes = static_cast<const unsigned char*>(data);
  length_ += size;
  if (filled_ > 0) {
    const std::size_t count = std::min(size, block_size - filled_);
    std::memcpy(block_.data() + filled_, bytes, count);
    filled_ += count, bytes += count, size -= count;
    if (filled_ < block_size) return;
    add(state_, block_.data(), 1);
    filled_ = 0;
  }
  add(state_, bytes, size / block_size);
  filled_ = size % block_size;
  if (filled_ > 0) std::memcpy(block_.data(), bytes + size - filled_, filled_);
}

std::array<unsigned char, 32> Sha256::digest() noexcept {
  const uint64_t bits = length_ * 8;
  static constexpr unsigned char padding[block_size] = {0x80};
  update(padding, 1 + (2 * block_size - 9 - filled_) % block_size);
  unsigned char length[8];
  for (int i = 0; i < 8; ++i) length[i] = static_cast<unsigned char>(bits >> (56 - 8 * i));
  update(length, sizeof length);
  std::array<unsigned char, 32> result;
  for (std::size_t i = 0; i < result.size(); ++i)
    result[i] = static_cast<unsigned char>(state_[i / 4] >> (24 - 8 * (i % 4)));
  return result;
}

}  // namespace ftr
