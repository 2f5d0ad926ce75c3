// SPDX-License-Identifier: MIT
/// Places in the text of a state: JSON, of which only what a way leads to is looked at.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ftr {

/// A way into a text: keys of objects as they are written, with their quotes, and numbers of items from 0 on.
using TextWay = std::vector<std::string>;

/// What a way leads to, as it is written; none if it leads nowhere. Any text may be given.
[[nodiscard]] std::optional<std::string_view> text_at(std::string_view text, const TextWay& way) noexcept;

}  // namespace ftr
