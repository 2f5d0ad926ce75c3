// SPDX-License-Identifier: MIT
#include "observe/events.hpp"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/rank.hpp"
#include "base/switches.hpp"
#include "observe/choice.hpp"
#include "observe/log.hpp"

namespace fpt {
namespace {

using namespace std::chrono;

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

constexpr std::string_view closing = "\n]\n";

/// Threads may call when the process ends.
struct Kept {
  std::mutex mutex;
  std::string table;  // where it goes: "1" is standard error, empty for none
  std::map<std::string, Row> rows;
  int64_t start = 0;
  std::atomic<int> trace{-1};  // descriptor
  off_t trace_end = 0;         // where its closing bracket is
  int64_t to_epoch = 0;        // from the steady clock, so that files of several ranks fit together
};

Kept& kept() {
  static Kept& instance = *new Kept;
  return instance;
}

template <class... Values>
std::string formatted(const char* format, Values... values) {
  char text[256];
  std::snprintf(text, sizeof text, format, values...);
  return text;
}

std::string microseconds(int64_t time) {
  return formatted("%lld.%03lld", static_cast<long long>(time / 1000), static_cast<long long>(time % 1000));
}

/// Mean and longest in microseconds, share of the wall time.
std::string columns(const Sum& sum, int64_t calls, int64_t wall) {
  if (calls == 0) return formatted(" |%11s%11s%8s", "-", "-", "-");
  const double share = wall > 0 ? 100 * static_cast<double>(sum.total) / static_cast<double>(wall) : 0.0;
  return formatted(" |%11s%11s%7s%%",
                   fixed(static_cast<double>(sum.total) / static_cast<double>(calls) / 1e3, 2).c_str(),
                   fixed(static_cast<double>(sum.longest) / 1e3, 2).c_str(), fixed(share, 2).c_str());
}

void add_to_table(const Event& event) {
  Row& row = kept().rows[event.name];
  ++row.calls;
  row.failures += event.status != FPT_OK;
  row.whole.add(event.time());
  if (!event.has_python()) return;
  ++row.python_calls;
  row.python.add(event.python_time());
  row.crossing.add(event.time() - event.python_time());
}

/// The event that ends a trace at its limit: an instant, which viewers show as a mark.
std::string last_event() {
  return concat("{\"name\": ", json_text(end_at_limit("trace")),
                ", \"ph\": \"I\", \"s\": \"p\", \"ts\": ", microseconds(time_now() + kept().to_epoch),
                ", \"pid\": ", rank().number, "}");
}

/// Append to the trace: the text takes the place of the closing bracket, which comes again, all in one write.
void append(const std::string& event) {
  const int descriptor = kept().trace.load();
  if (descriptor < 0) return;  // another thread has just found the disk full
  const bool is_last = kept().trace_end + static_cast<int64_t>(event.size()) > size_limit();
  const std::string text = concat(kept().trace_end > 1 ? ",\n" : "\n", is_last ? last_event() : event, closing);
  if (pwrite(descriptor, text.data(), text.size(), kept().trace_end) == static_cast<ssize_t>(text.size())) {
    kept().trace_end += static_cast<off_t>(text.size() - closing.size());
    if (!is_last) return;
    kept().trace.store(-1);
    close(descriptor);
    return;
  }
  // back to what was complete, and no more events
  kept().trace.store(-1);
  if (ftruncate(descriptor, kept().trace_end) == 0)
    (void)!pwrite(descriptor, closing.data(), closing.size(),
                  kept().trace_end);  // best effort: the warning says the rest
  close(descriptor);
  warn("FTN_PYTORCH_TRACE: the file could not be written any further, the trace ends here");
}

/// A complete event ("ph": "X") of this thread. @param arguments  members of a JSON object, without braces
void append(const std::string& name, const char* category, int64_t begin, int64_t end, const std::string& arguments) {
  append(concat("{\"name\": ", json_text(name), ", \"cat\": \"", category, "\", \"ph\": \"X\", \"ts\": ",
                microseconds(begin + kept().to_epoch), ", \"dur\": ", microseconds(end - begin),
                ", \"pid\": ", rank().number, ", \"tid\": ", syscall(SYS_gettid), ", \"args\": {", arguments, "}}"));
}

void add_to_trace(const Event& event) {
  std::string arguments = concat("\"status\": \"", status_name(event.status), "\"");
  if (event.inputs >= 0) arguments += concat(", \"inputs\": ", event.inputs);
  if (!event.file.empty()) arguments += concat(", \"file\": ", json_text(event.file));
  if (event.has_python()) append(event.name, "python", event.python_begin, event.python_end, "");
  append(event.name, event.category, event.begin, event.end, arguments);
}

void start_trace(const std::string& name) {
  const std::string path = name_for_rank(name);
  const int descriptor = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor < 0)
    return warn(
        concat("FTN_PYTORCH_TRACE: ", path, " cannot be written (", std::strerror(errno), "), so nothing is traced"));
  kept().to_epoch = duration_cast<nanoseconds>(system_clock::now().time_since_epoch()).count() - time_now();
  kept().trace.store(descriptor);
  if (pwrite(descriptor, "[", 1, 0) == 1) kept().trace_end = 1;
  append(concat("{\"name\": \"process_name\", \"ph\": \"M\", \"pid\": ", rank().number,
                ", \"args\": {\"name\": \"rank ", rank().number, "\"}}"));
}

}  // namespace

int64_t time_now() noexcept { return duration_cast<nanoseconds>(steady_clock::now().time_since_epoch()).count(); }

std::string variable(const char* name) {
  return is_switched_off(name) ? std::string() : std::string(variable_value(name));
}

void start_events() {
  kept().table = variable("FTN_PYTORCH_PROFILE");
  kept().start = time_now();
  if (const std::string trace = variable("FTN_PYTORCH_TRACE"); !trace.empty()) start_trace(trace);
}

bool traces() noexcept { return kept().trace.load() >= 0; }
bool keeps_events() noexcept { return traces() || !kept().table.empty(); }

void add_event(const Event& event) noexcept {
  if (!keeps_events()) return;
  const int error = errno;
  try {
    const WarningsLater later;
    const std::lock_guard<std::mutex> lock(kept().mutex);
    if (!kept().table.empty()) add_to_table(event);
    if (traces()) add_to_trace(event);
  } catch (...) {
  }
  errno = error;
}

void end_events() {
  const std::string text = kept().table.empty() ? "" : profile_table(time_now() - kept().start);
  if (text.empty()) return;
  if (kept().table == "1") {
    std::fflush(stderr);
    (void)write_whole(STDERR_FILENO, text);
    return;
  }
  const std::string name = name_for_rank(kept().table);
  const int file = open(name.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file < 0 || !write_whole(file, text) || close(file) != 0)
    warn(concat("FTN_PYTORCH_PROFILE: ", name, " cannot be written (", std::strerror(errno), ")"));
}

std::string profile_table(int64_t wall) {
  const std::lock_guard<std::mutex> lock(kept().mutex);
  if (kept().rows.empty()) return {};
  std::vector<std::pair<std::string, Row>> rows(kept().rows.begin(), kept().rows.end());
  std::sort(rows.begin(), rows.end(),
            [](const auto& a, const auto& b) { return a.second.whole.total > b.second.whole.total; });
  std::size_t width = 8;
  for (const auto& row : rows) width = std::max(width, row.first.size());
  std::string text = concat("ftn_pytorch profile of rank ", rank().number, ": ",
                            fixed(static_cast<double>(wall) / 1e9, 3), " s since the first load\n");
  text += std::string(width, ' ') + formatted("%10s%8s", "", "") +
          formatted(" |%-30s |%-30s |%-30s\n", " whole call", " of it Python", " of it crossing");
  text += "function" + std::string(width - 8, ' ') + formatted("%10s%8s", "calls", "failed");
  for (int i = 0; i < 3; ++i) text += formatted(" |%11s%11s%8s", "mean us", "max us", "share");
  text += '\n';
  for (const auto& [function, row] : rows) {
    text += function + std::string(width - function.size(), ' ');
    text += formatted("%10lld%8lld", static_cast<long long>(row.calls), static_cast<long long>(row.failures));
    text += columns(row.whole, row.calls, wall) + columns(row.python, row.python_calls, wall) +
            columns(row.crossing, row.python_calls, wall) + '\n';
  }
  return text;
}

std::string json_text(std::string_view text) {
  std::string result = "\"";
  for (const char c : as_utf8(text)) {
    if (static_cast<unsigned char>(c) < 0x20) {
      result += formatted("\\u%04x", static_cast<unsigned>(c));
    } else {
      if (c == '"' || c == '\\') result += '\\';
      result += c;
    }
  }
  return result + '"';
}

}  // namespace fpt
