// SPDX-License-Identifier: MIT
/// Observation of calls: FTN_PYTORCH_LOG, _PROFILE, _TRACE, _RECORD and _TORCH_PROFILE. Knows nothing of Python.
///
/// Without these variables a call pays for reading one flag. With one of them, the guard of the C interface (guard.hpp)
/// measures calls, and functions of scripts are called through observed_function.hpp.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "arrays/arg.hpp"
#include "observe/events.hpp"
#include "observe/log.hpp"

namespace fpt {

/// True if any variable asks for observation. Set once, before the first module is loaded.
extern FPT_API std::atomic<bool> observing;

/// Read the variables; done by the first call in the process. Whoever comes later waits until it is done.
FPT_API void start_observing();

/// True while the first calls are recorded; record_ended() says that there were enough.
FPT_API bool records() noexcept;
FPT_API void record_ended() noexcept;

void forget_module(int64_t module);

/// What a call is about; pointers live as long as it.
struct CallFacts {
  int64_t module;
  std::string_view function;  ///< or what is done with the module as a whole: "save"
  Args inputs, others;        ///< others: outputs, or targets of training
  bool is_of_whole = false;   ///< not a function is called, but the module saved, restored, ...
  std::string_view file;      ///< that this is about

  CallFacts(int64_t module, std::string_view function, Args inputs = {}, Args others = {})
      : module(module), function(function), inputs(inputs), others(others) {}
  static CallFacts of_whole(int64_t module, std::string_view what, std::string_view file = {}) {
    CallFacts facts(module, what);
    facts.is_of_whole = true;
    facts.file = file;
    return facts;
  }
};

/// One call through the C interface while it is observed.
class Crossing {
 public:
  explicit Crossing(const CallFacts& facts) noexcept;
  ~Crossing();
  Crossing(const Crossing&) = delete;
  Crossing& operator=(const Crossing&) = delete;
  void end(fpt_status status) noexcept;

  /// That of this thread, innermost first; null outside of one.
  FPT_API static Crossing* current() noexcept;

  /// The function of the script runs, or ran, from `begin` to `end`. What observation itself took beside that does not
  /// count: own_time.
  FPT_API void python_part(int64_t begin, int64_t end, int64_t own_time) noexcept;
  /// What the script got and gave, for the log.
  FPT_API void describe(std::string text, int hits, int misses);
  /// True if the log wants a description of this call: all of them at debug, the first of a function at info.
  bool wants_description() const noexcept { return wants_description_; }
  /// Array objects made since the call began.
  int arrays_made = 0;

 private:
  const CallFacts facts_;
  Event event_;
  Crossing* outer_;
  bool wants_description_ = false;
  int hits_ = 0, misses_ = 0;
  std::string description_;
};

inline bool is_observed() noexcept { return __builtin_expect(observing.load(std::memory_order_relaxed), false); }

/// A module was loaded in the place of another, or could not be: into the log, the table and the trace.
void report_load(int64_t module, int64_t before, std::string_view file, std::string_view backend, int64_t begin,
                 fpt_status status);

/// An array object was made: a miss of the cache.
inline void count_array() noexcept {
  if (observing.load(std::memory_order_relaxed))
    if (Crossing* crossing = Crossing::current()) ++crossing->arrays_made;
}

}  // namespace fpt
