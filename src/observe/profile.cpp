// SPDX-License-Identifier: MIT
#include "observe/profile.hpp"

#include <algorithm>
#include <cstdio>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/rank.hpp"

namespace fpt {
namespace {

struct Sum {
  int64_t total = 0, longest = 0;
  void add(int64_t time) {
    total += time;
    longest = std::max(longest, time);
  }
};

struct Row {
  int64_t calls = 0, failures = 0, python_calls = 0;
  Sum whole, python, crossing;
};

struct Table {
  std::mutex mutex;
  std::map<std::string, Row> rows;
};

Table& table() {
  static Table& instance = *new Table;
  return instance;
}

template <class... Values>
std::string formatted(const char* format, Values... values) {
  char text[256];
  std::snprintf(text, sizeof text, format, values...);
  return text;
}

/// Mean and longest in microseconds, share of the wall time.
std::string columns(const Sum& sum, int64_t calls, int64_t wall) {
  if (calls == 0) return formatted(" |%11s%11s%8s", "-", "-", "-");
  return formatted(" |%11.2f%11.2f%7.2f%%", static_cast<double>(sum.total) / static_cast<double>(calls) / 1e3,
                   static_cast<double>(sum.longest) / 1e3,
                   wall > 0 ? 100 * static_cast<double>(sum.total) / static_cast<double>(wall) : 0.0);
}

}  // namespace

void add_to_profile(const std::string& function, const CallTimes& times, bool failed) {
  const std::lock_guard<std::mutex> lock(table().mutex);
  Row& row = table().rows[function];
  ++row.calls;
  row.failures += failed;
  row.whole.add(times.whole);
  if (times.python < 0) return;
  ++row.python_calls;
  row.python.add(times.python);
  row.crossing.add(times.whole - times.python);
}

std::string profile_table(int64_t wall) {
  const std::lock_guard<std::mutex> lock(table().mutex);
  if (table().rows.empty()) return {};
  std::vector<std::pair<std::string, Row>> rows(table().rows.begin(), table().rows.end());
  std::sort(rows.begin(), rows.end(),
            [](const auto& a, const auto& b) { return a.second.whole.total > b.second.whole.total; });
  std::size_t width = 8;
  for (const auto& row : rows) width = std::max(width, row.first.size());
  const int name = static_cast<int>(width);
  std::string text = concat("ftn_pytorch profile of rank ", rank().number, ": ",
                            formatted("%.3f", static_cast<double>(wall) / 1e9), " s since the first load\n");
  text += std::string(width, ' ') + formatted("%10s%8s", "", "") +
          formatted(" |%-30s |%-30s |%-30s\n", " whole call", " of it Python", " of it crossing");
  text += "function" + std::string(width - 8, ' ') + formatted("%10s%8s", "calls", "failed");
  for (int i = 0; i < 3; ++i) text += formatted(" |%11s%11s%8s", "mean us", "max us", "share");
  text += '\n';
  for (const auto& [function, row] : rows) {
    text += function + std::string(static_cast<std::size_t>(name) - function.size(), ' ');
    text += formatted("%10lld%8lld", static_cast<long long>(row.calls), static_cast<long long>(row.failures));
    text += columns(row.whole, row.calls, wall) + columns(row.python, row.python_calls, wall) +
            columns(row.crossing, row.python_calls, wall) + '\n';
  }
  return text;
}

}  // namespace fpt
