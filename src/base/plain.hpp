// SPDX-License-Identifier: MIT
/// Numbers as text, the same in every locale: a program may call setlocale() or std::locale::global(). Knows nothing of
/// Python.
#pragma once

#include <cstdint>
#include <locale>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace fpt {

/// A stream that writes and reads as in C, without the separators of the program's locale.
template <class Stream>
class Plain : public Stream {
 public:
  template <class... Arguments>
  explicit Plain(Arguments&&... arguments) : Stream(std::forward<Arguments>(arguments)...) {
    this->imbue(std::locale::classic());
  }
};

/// Of digits alone; none for any other text, and for what 63 bits do not hold.
std::optional<int64_t> whole_number(std::string_view text) noexcept;

/// As "%.*f" writes it in C.
std::string fixed(double value, int decimals);

}  // namespace fpt
