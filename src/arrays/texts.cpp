// SPDX-License-Identifier: MIT
#include "arrays/texts.hpp"

#include <list>
#include <mutex>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/error.hpp"

namespace fpt {
namespace {

struct Text {
  int64_t number;
  std::shared_ptr<const std::string> text;
};

struct Texts {
  std::mutex mutex;
  std::list<Text> by_use;  // the one used last in front
  std::unordered_map<int64_t, std::list<Text>::iterator> by_number;
  std::unordered_map<std::string_view, std::list<Text>::iterator> by_content;
  std::size_t bytes = 0;
  int64_t latest = 0;
};

Texts& texts() {
  static Texts& instance = *new Texts;
  return instance;
}

/// About what a text takes beside its characters.
constexpr std::size_t bytes_beside = 256;

void drop_oldest(Texts& all) {
  const Text& oldest = all.by_use.back();
  all.bytes -= oldest.text->size() + bytes_beside;
  all.by_number.erase(oldest.number);
  all.by_content.erase(*oldest.text);
  all.by_use.pop_back();
}

/// An address may come again with another text, a number does not.
int64_t& number_of(fpt_arg& arg) noexcept { return arg.u.array.extents[0]; }

void use(Texts& all, std::list<Text>::iterator text) { all.by_use.splice(all.by_use.begin(), all.by_use, text); }

}  // namespace

void keep_text(fpt_arg& arg, std::string text) {
  Texts& all = texts();
  const std::lock_guard<std::mutex> lock(all.mutex);
  if (const auto known = all.by_content.find(text); known != all.by_content.end()) {
    use(all, known->second);
  } else {
    all.by_use.push_front({++all.latest, std::make_shared<const std::string>(std::move(text))});
    const std::string& kept = *all.by_use.front().text;
    all.by_number.emplace(all.latest, all.by_use.begin());
    all.by_content.emplace(kept, all.by_use.begin());
    all.bytes += kept.size() + bytes_beside;
    while (all.by_use.size() > kept_texts && all.bytes > kept_text_bytes) drop_oldest(all);
  }
  const Text& kept = all.by_use.front();
  arg.data = const_cast<char*>(kept.text->data());
  number_of(arg) = kept.number;
}

std::shared_ptr<const std::string> text_owner(const fpt_arg& arg, const std::string& what) {
  if (!has_kept_text(arg)) return {};
  Texts& all = texts();
  const std::lock_guard<std::mutex> lock(all.mutex);
  const auto known = all.by_number.find(arg.u.array.extents[0]);
  if (known == all.by_number.end())
    fail(FPT_ERR_FREED, what, " is a string of ", arg.length, " bytes that was described long ago, and ", kept_texts,
         " or more others of more than ", FPT_MAX_INLINE_TEXT, " bytes were used since: describe it again");
  use(all, known->second);
  return known->second->text;
}

}  // namespace fpt
