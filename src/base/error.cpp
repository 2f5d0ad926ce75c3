// SPDX-License-Identifier: MIT
#include "base/error.hpp"

#include <cstdio>
#include <mutex>
#include <vector>

#include "base/per_thread.hpp"

namespace fpt {
namespace {

/// Text of the last failure.
struct Failure {
  std::string text;
};

/// That of a thread without failures: without memory, and never destroyed.
union NoText {
  std::string text;
  NoText() noexcept : text() {}
  ~NoText() {}
};

/// Length of the character of UTF-8 that a text begins with, 0 if it begins with none.
std::size_t utf8_length(std::string_view text) noexcept {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  const std::size_t length = first < 0x80   ? 1
                             : first < 0xC2 ? 0
                             : first < 0xE0 ? 2
                             : first < 0xF0 ? 3
                             : first < 0xF5 ? 4
                                            : 0;
  if (length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xC0) != 0x80) return 0;
  const bool surrogate = byte(0) == 0xED && byte(1) >= 0xA0;
  const bool too_long = (byte(0) == 0xE0 && byte(1) < 0xA0) || (byte(0) == 0xF0 && byte(1) < 0x90);
  const bool too_large = byte(0) == 0xF4 && byte(1) >= 0x90;
  return surrogate || too_long || too_large ? 0 : length;
}

struct Name {
  fpt_status status;
  const char* name;
};

constexpr Name names[] = {
#include "base/status_names.inc"  // generated from ftn_pytorch.h
};

struct Warnings {
  std::mutex mutex;
  WarningHandler handler = nullptr;
  std::vector<std::string> kept;
};

Warnings& warnings() {
  static Warnings& instance = *new Warnings;
  return instance;
}

constexpr std::size_t max_kept_warnings = 64;

/// Trivially destroyed, unlike what it points to: exit() destroys thread_local objects before exit functions warn.
thread_local WarningsLater* innermost = nullptr;

}  // namespace

std::string as_utf8(std::string_view text) {
  std::string result;
  std::size_t copied = 0, at = 0;
  while (at < text.size()) {
    const std::size_t length = utf8_length(text.substr(at));
    at += length;
    if (length > 0) continue;
    char escaped[5];
    std::snprintf(escaped, sizeof escaped, "\\x%02x", static_cast<unsigned char>(text[at]));
    result.append(text, copied, at - copied).append(escaped);
    copied = ++at;
  }
  return result.append(text, copied, at - copied);
}

/// Without torch's list of all backends of an operator, and its advice for those who build torch: 7 kB behind the
/// sentence that says what is wrong.
static std::string without_backends(std::string text) {
  constexpr std::string_view advice = " This could be because the operator doesn't exist for this backend";
  for (std::size_t at = text.find(advice); at != std::string::npos; at = text.find(advice, at)) {
    std::size_t end = text.find('\n', at);
    for (std::size_t line = end; line != std::string::npos;) {  // empty, or "CPU: registered at ..."
      const std::size_t next = text.find('\n', line + 1);
      const std::string_view words = std::string_view(text).substr(line + 1, next - line - 1);
      if (!words.empty() && words.find("registered at ") == std::string_view::npos) break;
      if (!words.empty()) end = next;
      line = next;
    }
    text.erase(at, end == std::string::npos ? end : end - at);
  }
  return text;
}

fpt_status remember_error(fpt_status status, std::string_view text) noexcept {
  try {
    PerThread<Failure>::get().text = without_backends(as_utf8(text));
  } catch (...) {
    if (Failure* before = PerThread<Failure>::find()) before->text.clear();  // which is about something else
  }
  return status;
}

const std::string& last_error() noexcept {
  static const NoText none;
  const Failure* failure = PerThread<Failure>::find();
  return failure ? failure->text : none.text;
}

const char* status_name(fpt_status status) noexcept {
  for (const Name& entry : names)
    if (entry.status == status) return entry.name;
  return "unknown status";
}

fpt_status status_of_name(const std::string& name) noexcept {
  for (const Name& entry : names)
    if (std::string("FTN_PYTORCH_ERR_") + name == entry.name) return entry.status;
  return FPT_ERR_INTERNAL;
}

void set_warning_handler(WarningHandler handler) {
  std::vector<std::string> kept;
  {
    std::lock_guard<std::mutex> lock(warnings().mutex);
    warnings().handler = handler;
    if (handler) kept.swap(warnings().kept);
  }
  for (const std::string& text : kept) handler(text.data(), static_cast<int64_t>(text.size()));
}

void warn(const std::string& words) {
  if (innermost) return innermost->texts_.push_back(words);
  const std::string text = as_utf8(words);
  WarningHandler handler;
  {
    std::lock_guard<std::mutex> lock(warnings().mutex);
    handler = warnings().handler;
    if (!handler && warnings().kept.size() < max_kept_warnings) warnings().kept.push_back(text);
  }
  if (handler) handler(text.data(), static_cast<int64_t>(text.size()));
}

WarningsLater::WarningsLater() noexcept : outer_(std::exchange(innermost, this)) {}

WarningsLater::~WarningsLater() {
  innermost = outer_;
  try {
    for (const std::string& text : texts_) warn(text);
  } catch (...) {  // no memory
  }
}

}  // namespace fpt
