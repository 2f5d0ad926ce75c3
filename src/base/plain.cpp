// SPDX-License-Identifier: MIT
#include "base/plain.hpp"

#include <charconv>

namespace fpt {

std::string fixed(double value, int decimals) {
  char text[400];  // the largest number has 309 digits before the point
  char* const end = std::to_chars(std::begin(text), std::end(text), value, std::chars_format::fixed, decimals).ptr;
  return {std::begin(text), end};
}

}  // namespace fpt
