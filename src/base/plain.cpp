// SPDX-License-Identifier: MIT
#include "base/plain.hpp"

#include <charconv>

namespace fpt {

std::optional<int64_t> whole_number(std::string_view text) noexcept {
  int64_t number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_number =
      !text.empty() && text[0] != '-' && read.ec == std::errc() && read.ptr == text.data() + text.size();
  return is_number ? std::optional(number) : std::nullopt;
}

std::string fixed(double value, int decimals) {
  char text[400];  // the largest number has 309 digits before the point
  char* const end = std::to_chars(std::begin(text), std::end(text), value, std::chars_format::fixed, decimals).ptr;
  return {std::begin(text), end};
}

}  // namespace fpt
