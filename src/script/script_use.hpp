// SPDX-License-Identifier: MIT
/// How a thread uses a script: in a call, beside those of other threads, or alone.
#pragma once

#include <utility>

#include "python/interpreter.hpp"
#include "script/script_modes.hpp"
#include "script/script_runner.hpp"

namespace fpt {

/// The Python object of the script that this thread calls, null for none; found without a call, as `own_state` is.
extern __thread PyObject* runner_in_call __attribute__((tls_model("initial-exec")));

/// A call in progress: with the lock, and with what a reload replaces meanwhile kept until it has ended.
class ScriptRunner::InCall {
 public:
  explicit InCall(ScriptRunner& runner)
      : runner_(runner),
        call_(runner.turns_),
        modes_(runner.number_),
        outer_(std::exchange(runner_in_call, runner.script_.runner.get())) {
    ++calls_running;
  }
  ~InCall() {
    --calls_running;
    runner_in_call = outer_;
    if (runner_.turns_.calls() > 1 || !std::exchange(runner_.has_garbage_, false)) return;
    std::exchange(runner_.retired_, {}).clear();  // destroying them may run Python code that comes back here
    runner_.collect_garbage();
  }
  InCall(const InCall&) = delete;
  InCall& operator=(const InCall&) = delete;

 private:
  const InterpreterLock gil_;
  ScriptRunner& runner_;
  const Turns::Call call_;
  const ModesOfScript modes_;
  PyObject* const outer_;
};

/// Reads or replaces all state: with the lock, and while no other thread calls.
class ScriptRunner::Alone {
 public:
  explicit Alone(ScriptRunner& runner) : alone_(runner.turns_), modes_(runner.number_) { ++calls_running; }
  ~Alone() { --calls_running; }
  Alone(const Alone&) = delete;
  Alone& operator=(const Alone&) = delete;

 private:
  const InterpreterLock gil_;
  const Turns::Alone alone_;
  const ModesOfScript modes_;
};

}  // namespace fpt
