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

/// Finds what ways lead to. Ways that follow each other differ in their last step as a rule: the others are gone once.
class StateText {
 public:
  /// Any text may be given. It must outlive what is found in it.
  explicit StateText(std::string_view text) noexcept : text_(text), around_(text) {}

  /// What a way leads to, as it is written; none if it leads nowhere.
  [[nodiscard]] std::optional<std::string_view> at(const TextWay& way);

 private:
  std::string_view text_;
  TextWay gone_;                            ///< all steps of the last way but one
  std::optional<std::string_view> around_;  ///< what they lead to
};

}  // namespace ftr
