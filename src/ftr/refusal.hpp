// SPDX-License-Identifier: MIT
/// What the reader refuses, and the texts that say why.
#pragma once

#include <cstdint>
#include <exception>
#include <locale>
#include <sstream>
#include <string>
#include <utility>

namespace ftr {

/// Of a file: `file` cannot be read, `corrupt` is damaged, `format` breaks a rule of the format or needs another torch.
/// Of a call: there is no such `function`, the arguments are another number (`signature`), `dtype`, `shape` or value
/// (`argument`) than any recording takes, or the `state` is another one than it was recorded with.
enum class Why : uint8_t { file, corrupt, format, function, signature, dtype, shape, argument, state };

/// Nothing has been changed. Texts of a file are quoted as they are, whatever their bytes.
class Refusal : public std::exception {
 public:
  Refusal(Why why, std::string text) : why_(why), text_(std::move(text)) {}
  Why why() const noexcept { return why_; }
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  Why why_;
  std::string text_;
};

/// A stream for texts, which are the same in every locale: a program may call setlocale() or std::locale::global().
class Text : public std::ostringstream {
 public:
  Text() { imbue(std::locale::classic()); }
};

/// All parts written one after the other.
template <class... Parts>
std::string concat(const Parts&... parts) {
  Text text;
  (text << ... << parts);
  return text.str();
}

template <class... Parts>
[[noreturn]] void fail(Why why, const Parts&... parts) {
  throw Refusal(why, concat(parts...));
}

}  // namespace ftr
