// SPDX-License-Identifier: MIT
#include "observe/trace.hpp"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <mutex>

#include "base/error.hpp"
#include "base/rank.hpp"

namespace fpt {
namespace {

constexpr std::string_view closing = "\n]\n";

struct File {
  std::mutex mutex;
  std::atomic<int> descriptor{-1};
  off_t end = 0;         // where the closing bracket is
  int64_t to_epoch = 0;  // nanoseconds from the steady clock to the epoch, so that files of several ranks fit together
};

File& file() {
  static File& instance = *new File;
  return instance;
}

std::string microseconds(int64_t nanoseconds) {
  char text[40];
  std::snprintf(text, sizeof text, "%lld.%03lld", static_cast<long long>(nanoseconds / 1000),
                static_cast<long long>(nanoseconds % 1000));
  return text;
}

/// Append an event: its text takes the place of the closing bracket, which comes again, all in one write.
void append(const std::string& event) {
  const std::lock_guard<std::mutex> lock(file().mutex);
  const std::string text = concat(file().end > 1 ? ",\n" : "\n", event, closing);
  if (!traces()) return;  // another thread has just found the disk full
  const ssize_t written = pwrite(file().descriptor.load(), text.data(), text.size(), file().end);
  if (written == static_cast<ssize_t>(text.size())) {
    file().end += static_cast<off_t>(text.size() - closing.size());
    return;
  }
  // the disk is full: back to what was complete, and no more events
  const int descriptor = file().descriptor.exchange(-1);
  if (ftruncate(descriptor, file().end) == 0)
    (void)!pwrite(descriptor, closing.data(), closing.size(), file().end);  // best effort: the warning says the rest
  close(descriptor);
  warn("FTN_PYTORCH_TRACE: the file could not be written any further, the trace ends here");
}

}  // namespace

void start_trace(const std::string& name) {
  const std::string path = name_for_rank(name);
  const int descriptor = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor < 0)
    return warn(
        concat("FTN_PYTORCH_TRACE: ", path, " cannot be written (", std::strerror(errno), "), so nothing is traced"));
  using namespace std::chrono;
  file().to_epoch = duration_cast<nanoseconds>(system_clock::now().time_since_epoch()).count() -
                    duration_cast<nanoseconds>(steady_clock::now().time_since_epoch()).count();
  file().descriptor.store(descriptor);
  if (pwrite(descriptor, "[", 1, 0) == 1) file().end = 1;
  append(concat("{\"name\": \"process_name\", \"ph\": \"M\", \"pid\": ", rank().number,
                ", \"args\": {\"name\": \"rank ", rank().number, "\"}}"));
}

bool traces() noexcept { return file().descriptor.load() >= 0; }

void trace(const TraceEvent& event) noexcept {
  if (!traces()) return;
  const int kept = errno;
  try {
    append(concat("{\"name\": ", json_text(event.name), ", \"cat\": \"", event.category,
                  "\", \"ph\": \"X\", \"ts\": ", microseconds(event.begin + file().to_epoch),
                  ", \"dur\": ", microseconds(event.end - event.begin), ", \"pid\": ", rank().number,
                  ", \"tid\": ", syscall(SYS_gettid), ", \"args\": {", event.arguments, "}}"));
  } catch (...) {
  }
  errno = kept;
}

std::string json_text(std::string_view text) {
  std::string result = "\"";
  for (const char c : as_utf8(text)) {
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char code[8];
      std::snprintf(code, sizeof code, "\\u%04x", static_cast<unsigned>(c));
      result += code;
    } else {
      result += c;
    }
  }
  return result + '"';
}

}  // namespace fpt
