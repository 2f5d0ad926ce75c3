// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include <string>

#include "ftr/sha256.hpp"

namespace ftr {
namespace {

std::string hexadecimal(Sha256 sum) {
  std::string text;
  for (const unsigned char byte : sum.digest()) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

std::string sum_of(const std::string& bytes, std::size_t at_once = std::string::npos) {
  Sha256 sum;
  for (std::size_t at = 0; at < bytes.size();) {
    sum.update(bytes.substr(at, at_once));
    at += std::min(at_once, bytes.size() - at);
  }
  return hexadecimal(sum);
}

// Examples of NIST for FIPS 180-4, and what coreutils print.
TEST(Sha256, DigestsAreThoseOfTheStandard) {
  EXPECT_EQ(sum_of(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sum_of("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sum_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sum_of("abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmno"
                   "pqrstnopqrstu"),
            "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1");
  EXPECT_EQ(sum_of(std::string(1'000'000, 'a')), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, PiecesOfAnySizeGiveTheSame) {
  for (const std::size_t size : {1, 55, 56, 57, 63, 64, 65, 119, 120, 128, 1000}) {
    std::string bytes;
    for (std::size_t i = 0; i < size; ++i) bytes += static_cast<char>(i * 7);
    for (const std::size_t at_once : {1, 3, 63, 64, 65, 100}) EXPECT_EQ(sum_of(bytes, at_once), sum_of(bytes)) << size;
  }
}

}  // namespace
}  // namespace ftr
