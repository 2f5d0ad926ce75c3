// SPDX-License-Identifier: MIT
#include "observe/choice.hpp"

#include "base/error.hpp"
#include "base/plain.hpp"
#include "base/rank.hpp"
#include "base/switches.hpp"

namespace fpt {
namespace {

constexpr const char *ranks_variable = "FTN_PYTORCH_LOG_RANKS", *limit_variable = "FTN_PYTORCH_LOG_LIMIT";
constexpr std::string_view usual_limit = "100M";

struct Choice {
  bool writes = true;
  std::optional<int64_t> limit;
};

Choice& choice() {
  static Choice& instance = *new Choice;
  return instance;
}

void read_ranks() {
  const std::string_view list = variable_value(ranks_variable);
  if (list.empty()) return;
  const std::optional<bool> is_here = is_in_list(list, rank().number);
  if (!is_here)
    warn_of_job(
        concat(ranks_variable, " is \"", list, "\": it must be ranks such as \"0,100-103\", so rank 0 alone writes"));
  choice().writes = is_here.value_or(rank().number == 0);
  bool is_any = !is_here;
  for (int number = 0; number < rank().count && !is_any; ++number) is_any = is_in_list(list, number).value_or(false);
  if (!is_any)
    warn_of_job(concat(ranks_variable, " is \"", list, "\": this job has ranks 0 to ", rank().count - 1,
                       ", so nothing is written"));
}

void read_limit() {
  const std::string_view text = variable_value(limit_variable);
  if (text.empty()) return;
  choice().limit = bytes_of(text);
  if (!choice().limit)
    warn_of_job(concat(limit_variable, " is \"", text,
                       "\": it must be a size such as \"100M\", or \"0\" for none, so the usual limits hold"));
}

}  // namespace

std::optional<bool> is_in_list(std::string_view list, int64_t number) {
  bool is_there = false;
  while (true) {
    const std::size_t comma = list.find(',');
    const std::string_view part = list.substr(0, comma);
    const std::size_t dash = part.find('-');
    const auto first = whole_number(part.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : whole_number(part.substr(dash + 1));
    if (!first || !last || *last < *first) return {};
    is_there = is_there || (*first <= number && number <= *last);
    if (comma == std::string_view::npos) return is_there;
    list.remove_prefix(comma + 1);
  }
}

std::optional<int64_t> bytes_of(std::string_view text) {
  constexpr std::string_view units = "KMG";
  const std::size_t unit = text.empty() ? std::string_view::npos : units.find(text.back());
  const int bits = unit == std::string_view::npos ? 0 : 10 * (static_cast<int>(unit) + 1);
  if (bits > 0) text.remove_suffix(1);
  const auto number = whole_number(text);
  if (!number || *number > no_limit >> bits) return {};
  return *number == 0 ? no_limit : *number << bits;
}

void read_choice() {
  read_ranks();
  read_limit();
}

bool writes_here() noexcept { return choice().writes; }
int64_t size_limit(int64_t usual) noexcept { return choice().limit.value_or(usual); }

std::string end_at_limit(std::string_view what) {
  return concat("the ", what, " ends here: it has the size of ", limit_variable, ", ",
                choice().limit ? variable_value(limit_variable) : usual_limit);
}

}  // namespace fpt
