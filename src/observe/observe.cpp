// SPDX-License-Identifier: MIT
#include "observe/observe.hpp"

#include <pthread.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>
#include <set>

#include "arrays/array.hpp"
#include "base/error.hpp"
#include "base/rank.hpp"
#include "observe/profile.hpp"
#include "observe/trace.hpp"

namespace fpt {
namespace {

struct Names {
  std::mutex mutex;
  std::map<int64_t, std::string> modules;
  std::map<std::string, std::string> files;  // what each file is called, for good: modules come and go
  std::set<std::string> used;                // all of these and of the modules
  std::set<std::string> described;           // functions whose first call is in the log
};

Names& names() {
  static Names& instance = *new Names;
  return instance;
}

std::atomic<bool> recording{false};
std::string profile_target;
int64_t started_at = 0;
thread_local Crossing* innermost = nullptr;

std::string variable(const char* name) {
  const char* text = std::getenv(name);
  return text && std::strcmp(text, "0") != 0 ? text : "";
}

/// To standard error for "1", else into the file of that name.
void write_profile() {
  const std::string text = profile_table(time_now() - started_at);
  if (text.empty()) return;
  if (profile_target == "1") {
    std::fflush(stderr);
    for (std::size_t done = 0; done < text.size();) {
      const ssize_t count = write(STDERR_FILENO, text.data() + done, text.size() - done);
      if (count <= 0 && errno != EINTR) return;
      if (count > 0) done += static_cast<std::size_t>(count);
    }
    return;
  }
  const std::string name = name_for_rank(profile_target);
  std::FILE* file = std::fopen(name.c_str(), "w");
  bool is_written = file != nullptr;
  if (file) is_written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if (file) is_written = std::fclose(file) == 0 && is_written;
  if (!is_written) warn(concat("FTN_PYTORCH_PROFILE: ", name, " cannot be written (", std::strerror(errno), ")"));
}

/// exit() runs this after the exit handler of the interpreter, which is registered later: calls made there count too.
void at_exit() {
  if (!observing.exchange(false)) return;
  log(LogLevel::info, "the program ends");
  if (!profile_target.empty()) write_profile();
}

/// A child that was forked shares the files: it would write into them as if it were this process.
void in_child() { observing.store(false); }

/// As Fortran writes a shape: "(3,100)"; nothing for a scalar.
std::string extents_text(const fpt_arg& arg) {
  std::string text;
  for (int32_t i = 0; i < arg.rank; ++i) text += concat(i ? "," : "(", arg.u.array.extents[i]);
  return arg.rank > 0 ? text + ")" : text;
}

/// "real(real32)(3,100)"
std::string description_of(const fpt_arg& arg) {
  const std::string name = arg.name[0] ? concat(arg.name, "=") : "";
  if (arg.status != FPT_OK) return concat(name, "(", status_name(arg.status), ")");
  if (arg.dtype == FPT_NONE) return name + "tensor";
  if (arg.dtype == FPT_TEXT) return concat(name, "string of ", arg.length);
  return concat(name, dtype_fortran_name(arg.dtype), extents_text(arg));
}

std::string descriptions_of(Args args) {
  std::string text;
  for (const fpt_arg& arg : args) text += concat(&arg == args.first ? "" : ", ", description_of(arg));
  return args.count > 0 ? text : "none";
}

std::string name_of(int64_t module) {
  const std::lock_guard<std::mutex> lock(names().mutex);
  const auto found = names().modules.find(module);
  return found != names().modules.end() ? found->second : "(no module)";
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

std::string milliseconds(int64_t time) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3f ms", static_cast<double>(time) / 1e6);
  return text;
}

/// The first of `name`, `name#2`, ... that is free. With the lock held.
std::string numbered(const std::string& name, const std::set<std::string>& taken) {
  std::string result = name;
  for (int number = 2; taken.count(result) > 0; ++number) result = concat(name, "#", number);
  return result;
}

/// What a file is called in the table, the log and the trace: "net", or "net.onnx" beside another file called net.
std::string name_of_file(std::string_view file) {
  std::error_code error;
  const std::filesystem::path given(file), path = std::filesystem::absolute(given, error).lexically_normal();
  const std::lock_guard<std::mutex> lock(names().mutex);
  std::string& name = names().files[path.string()];
  if (!name.empty()) return name;
  const std::string stem = given.stem().string();
  name = names().used.count(stem) == 0 ? stem : numbered(given.filename().string(), names().used);
  names().used.insert(name);
  return name;
}

/// Give a module its name: that of its file, or "net#2" beside another module of the same file.
void name_module(int64_t module, const std::string& file_name) {
  const std::lock_guard<std::mutex> lock(names().mutex);
  std::set<std::string> taken;
  for (const auto& known : names().modules) taken.insert(known.second);
  const std::string name = numbered(file_name, taken);
  names().used.insert(name);
  names().modules[module] = name;
}

}  // namespace

std::atomic<bool> observing{false};

int64_t time_now() noexcept {
  using namespace std::chrono;
  return duration_cast<nanoseconds>(steady_clock::now().time_since_epoch()).count();
}

void start_observing() {
  static std::once_flag once;
  std::call_once(once, [] {
    start_log();
    profile_target = variable("FTN_PYTORCH_PROFILE");
    const std::string trace_file = variable("FTN_PYTORCH_TRACE");
    if (!trace_file.empty()) start_trace(trace_file);
    recording.store(!variable("FTN_PYTORCH_RECORD").empty());
    const bool profiles_torch = !variable("FTN_PYTORCH_TORCH_PROFILE").empty();  // all else is done by Python
    if (!logs(LogLevel::info) && profile_target.empty() && !traces() && !records() && !profiles_torch) return;
    started_at = time_now();
    observing.store(true);
    std::atexit(at_exit);
    pthread_atfork(nullptr, nullptr, in_child);
    log(LogLevel::info,
        concat("ftn_pytorch ", FPT_VERSION, ", process ", getpid(), ", rank ", rank().number, " of ", rank().count));
  });
}

bool records() noexcept { return recording.load(std::memory_order_relaxed); }
void record_ended() noexcept { recording.store(false); }

void forget_module(int64_t module) {
  const std::string name = name_of(module);
  const std::lock_guard<std::mutex> lock(names().mutex);
  if (names().modules.erase(module) > 0) log(LogLevel::info, "freed " + name);
}

Crossing* Crossing::current() noexcept { return innermost; }

Crossing::Crossing(const CallFacts& facts) noexcept : facts_(facts), outer_(innermost), begin_(time_now()) {
  try {
    name_ = facts.is_of_whole ? concat(facts.function, " of ", name_of(facts.module))
                              : concat(name_of(facts.module), ".", facts.function);
    wants_description_ = logs(LogLevel::debug);
    if (!wants_description_ && logs(LogLevel::info)) {
      const std::lock_guard<std::mutex> lock(names().mutex);
      wants_description_ = names().described.insert(name_).second;
    }
  } catch (...) {
  }
  innermost = this;
  begin_ = time_now();
}

Crossing::~Crossing() { innermost = outer_; }

void Crossing::python_part(int64_t begin, int64_t end, int64_t own_time) noexcept {
  python_begin_ = begin;
  python_end_ = end;
  own_time_ = own_time;
}

void Crossing::describe(std::string text, int hits, int misses) {
  description_ = std::move(text);
  hits_ = hits;
  misses_ = misses;
}

void Crossing::end(fpt_status status) noexcept {
  const int64_t end = time_now();
  try {
    const bool has_python = python_end_ > 0;
    const CallTimes times{end - begin_ - own_time_, has_python ? python_end_ - python_begin_ : -1};
    if (!profile_target.empty()) add_to_profile(name_, times, status != FPT_OK);
    if (traces()) {
      std::string result = concat("\"status\": \"", status_name(status), "\"");
      if (!facts_.is_of_whole) result += concat(", \"inputs\": ", facts_.inputs.count);
      if (!facts_.file.empty()) result += concat(", \"file\": ", json_text(facts_.file));
      if (has_python) trace({name_, "python", python_begin_, python_end_, ""});
      trace({name_, "crossing", begin_, end, result});
    }
    if (wants_description_ || (status != FPT_OK && logs(LogLevel::info))) {
      std::string text = concat(name_, " in ", milliseconds(times.whole));
      if (has_python) text += concat(" (Python ", milliseconds(times.python), ")");
      if (!facts_.is_of_whole) text += concat(", from Fortran: ", descriptions_of(facts_.inputs));
      if (!facts_.file.empty()) text += concat(", file ", facts_.file);
      if (facts_.others.count > 0) text += concat("; ", descriptions_of(facts_.others));
      if (!description_.empty())
        text += concat(", in the script: ", description_, ", cache: ", hits_, " hits, ", misses_, " misses");
      if (status != FPT_OK) text += concat(": ", status_name(status), ": ", first_line(last_error()));
      log(logs(LogLevel::debug) ? LogLevel::debug : LogLevel::info, text);
    }
  } catch (...) {
  }
}

void report_load(int64_t module, int64_t before, std::string_view file, std::string_view backend, int64_t begin,
                 fpt_status status) {
  if (status == FPT_OK && before != module) forget_module(before);
  const int64_t end = time_now();
  const std::string name = name_of_file(file);
  if (status == FPT_OK) {
    name_module(module, name);
    log(LogLevel::info,
        concat("loaded ", file, " as ", name_of(module), ", backend ", backend, ", in ", milliseconds(end - begin)));
  } else {
    log(LogLevel::info, concat("could not load ", file, ": ", status_name(status), ": ", first_line(last_error())));
  }
  if (!profile_target.empty()) add_to_profile("load of " + name, {end - begin, -1}, status != FPT_OK);
  if (traces())
    trace({"load of " + name, "load", begin, end,
           concat("\"file\": ", json_text(file), ", \"status\": \"", status_name(status), "\"")});
}

}  // namespace fpt
