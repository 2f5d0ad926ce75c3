// SPDX-License-Identifier: MIT
#include "observe/observe.hpp"

#include <pthread.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>
#include <set>

#include "arrays/array.hpp"
#include "base/error.hpp"
#include "base/rank.hpp"
#include "observe/choice.hpp"

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
thread_local Crossing* innermost = nullptr;

/// exit() runs this after the exit handler of the interpreter, which is registered later: calls made there count too.
void at_exit() {
  if (!observing.exchange(false)) return;
  log(LogLevel::info, "the program ends");
  end_events();
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

std::string milliseconds(int64_t time) { return fixed(static_cast<double>(time) / 1e6, 3) + " ms"; }

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

void start_observing() {
  const WarningsLater later;
  static std::once_flag once;
  std::call_once(once, [] {
    read_choice();
    if (!writes_here()) return;
    start_log();
    start_events();
    recording.store(!variable("FTN_PYTORCH_RECORD").empty());
    const bool profiles_torch = !variable("FTN_PYTORCH_TORCH_PROFILE").empty();  // all else is done by Python
    if (!logs(LogLevel::info) && !keeps_events() && !records() && !profiles_torch) return;
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

Crossing::Crossing(const CallFacts& facts) noexcept : facts_(facts), event_{{}, "crossing"}, outer_(innermost) {
  try {
    event_.name = facts.is_of_whole ? concat(facts.function, " of ", name_of(facts.module))
                                    : concat(name_of(facts.module), ".", facts.function);
    event_.file = facts.file;
    if (!facts.is_of_whole) event_.inputs = facts.inputs.count;
    wants_description_ = logs(LogLevel::debug);
    if (!wants_description_ && logs(LogLevel::info)) {
      const std::lock_guard<std::mutex> lock(names().mutex);
      wants_description_ = names().described.insert(event_.name).second;
    }
  } catch (...) {
  }
  innermost = this;
  event_.begin = time_now();
}

Crossing::~Crossing() { innermost = outer_; }

void Crossing::python_part(int64_t begin, int64_t end, int64_t own_time) noexcept {
  event_.python_begin = begin;
  event_.python_end = end;
  event_.own_time = own_time;
}

void Crossing::describe(std::string text, int hits, int misses) {
  description_ = std::move(text);
  hits_ = hits;
  misses_ = misses;
}

void Crossing::end(fpt_status status) noexcept {
  event_.end = time_now();
  event_.status = status;
  add_event(event_);
  if (!wants_description_ && (status == FPT_OK || !logs(LogLevel::info))) return;
  try {
    std::string text = concat(event_.name, " in ", milliseconds(event_.time()));
    if (event_.has_python()) text += concat(" (Python ", milliseconds(event_.python_time()), ")");
    if (!facts_.is_of_whole) text += concat(", from Fortran: ", descriptions_of(facts_.inputs));
    if (!facts_.file.empty()) text += concat(", file ", facts_.file);
    if (facts_.others.count > 0) text += concat("; ", descriptions_of(facts_.others));
    if (!description_.empty())
      text += concat(", in the script: ", description_, ", cache: ", hits_, " hits, ", misses_, " misses");
    if (status != FPT_OK) text += concat(": ", status_name(status), ": ", first_line(last_error()));
    log(logs(LogLevel::debug) ? LogLevel::debug : LogLevel::info, text);
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
  Event event{"load of " + name, "load", begin, end, status};
  event.file = file;
  add_event(event);
}

}  // namespace fpt
