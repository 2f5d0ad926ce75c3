// SPDX-License-Identifier: MIT
/// How a thread uses a script: in a call, beside those of other threads, or alone.
#pragma once

#include <utility>

#include "python/interpreter.hpp"
#include "script/script_modes.hpp"
#include "script/script_runner.hpp"

namespace fpt {

/// A call in progress: with the lock, and with what a reload replaces meanwhile kept until it has ended.
class ScriptRunner::InCall {
 public:
  explicit InCall(ScriptRunner& runner) : runner_(runner), call_(runner.turns_), modes_(runner.number_) {
    ++calls_running;
  }
  ~InCall() {
    --calls_running;
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
