// SPDX-License-Identifier: MIT
/// Values in the short JSON texts that this library writes of its files and locks, in C++ and in Python. Knows nothing
/// of Python.
#pragma once

#include <string>
#include <string_view>

namespace fpt {

/// The value of a key as it stands there, escapes included, and without its quotes if it is a text; empty if there is
/// no such key. Quotes within texts are escaped, so what stands between plain ones is a key.
inline std::string_view json_field(std::string_view text, std::string_view key) {
  const std::string before = "\"" + std::string(key) + "\": ";
  const std::size_t found = text.find(before);
  if (found == std::string_view::npos) return {};
  text.remove_prefix(found + before.size());
  if (text.empty() || text.front() != '"') {
    const std::size_t end = text.find_first_of(",}");
    return end == std::string_view::npos ? std::string_view() : text.substr(0, end);
  }
  std::size_t end = 1;
  while (end < text.size() && text[end] != '"') end += text[end] == '\\' ? 2 : 1;
  return end < text.size() ? text.substr(1, end - 1) : std::string_view();
}

}  // namespace fpt
