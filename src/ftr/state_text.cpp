// SPDX-License-Identifier: MIT
#include "ftr/state_text.hpp"

#include <algorithm>
#include <charconv>
#include <system_error>

namespace ftr {
namespace {

/// Moves through a text. What is no JSON ends a way, and leads nowhere else.
class Cursor {
 public:
  explicit Cursor(std::string_view text) noexcept : text_(text) { skip_space(); }

  /// To the value of a key, or to an item. False if there is none.
  bool enter(std::string_view step) noexcept {
    const bool is_object = next() == '{';
    if (!is_object && next() != '[') return false;
    ++at_;
    skip_space();
    std::size_t wanted = 0;
    if (!is_object && std::from_chars(step.data(), step.data() + step.size(), wanted).ec != std::errc{}) return false;
    for (std::size_t number = 0; next() != '\0' && next() != ']' && next() != '}'; ++number) {
      if (is_object) {
        const std::size_t begin = at_;
        skip_value();
        const std::string_view key = text_.substr(begin, at_ - begin);
        skip_space();
        if (next() != ':') return false;
        ++at_;
        skip_space();
        if (key == step) return true;
      } else if (number == wanted) {
        return true;
      }
      skip_value();
      skip_space();
      if (next() != ',') return false;
      ++at_;
      skip_space();
    }
    return false;
  }

  std::string_view value() noexcept {
    const std::size_t begin = at_;
    skip_value();
    return text_.substr(begin, at_ - begin);
  }

 private:
  [[nodiscard]] char next() const noexcept { return at_ < text_.size() ? text_[at_] : '\0'; }

  void skip_space() noexcept {
    while (next() == ' ' || next() == '\n' || next() == '\t' || next() == '\r') ++at_;
  }

  void skip_string() noexcept {
    for (++at_; at_ < text_.size() && text_[at_] != '"'; ++at_)
      if (text_[at_] == '\\') ++at_;
    at_ = at_ < text_.size() ? at_ + 1 : text_.size();
  }

  void skip_value() noexcept {
    constexpr std::string_view ends = ",:]} \n\t\r";
    std::size_t depth = 0;
    do {
      const char first = next();
      if (first == '"') {
        skip_string();
      } else if (first == '{' || first == '[') {
        ++depth, ++at_;
      } else if (depth > 0 && ends.find(first) != std::string_view::npos) {
        depth -= first == '}' || first == ']' ? 1 : 0, ++at_;
      } else {
        while (at_ < text_.size() && ends.find(text_[at_]) == std::string_view::npos) ++at_;
      }
    } while (depth > 0 && at_ < text_.size());
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

std::optional<std::string_view> value_at(std::string_view text, std::string_view step) noexcept {
  Cursor cursor(text);
  return cursor.enter(step) ? std::optional(cursor.value()) : std::nullopt;
}

}  // namespace

std::optional<std::string_view> StateText::at(const TextWay& way) {
  if (way.empty()) return Cursor(text_).value();
  if (!std::equal(gone_.begin(), gone_.end(), way.begin(), way.end() - 1)) {
    gone_.assign(way.begin(), way.end() - 1);
    around_ = text_;
    for (const std::string& step : gone_) around_ = around_ ? value_at(*around_, step) : std::nullopt;
  }
  return around_ ? value_at(*around_, way.back()) : std::nullopt;
}

}  // namespace ftr
