// SPDX-License-Identifier: MIT
/// Whose turn it is in a module: calls run side by side, and what writes or replaces all of its state runs alone.
#pragma once

#include <cstdint>

namespace fpt {

/// One for each module. The interpreter lock guards it, and is not enough by itself: torch lets go of it within a call.
///
/// A thread that waits holds nobody up: its own calls, which go on after it, do not count meanwhile. So a script may
/// write a checkpoint from within a call of its own module, also in two threads at once. Waiting lets go of the
/// interpreter lock.
class Turns {
 public:
  /// A call in progress. Waits while somebody is alone, and lets those pass who wait for it, unless the thread is
  /// within a call already, which somebody may be waiting for. In the order of the stack of its thread.
  class Call {
   public:
    explicit Call(Turns& turns) : turns_(turns), outer_(innermost) {
      if (turns.wanted_ != 0) turns.wait_for_call();
      ++turns.calls_;
      innermost = this;
    }
    ~Call() {
      innermost = outer_;
      --turns_.calls_;
      if (turns_.wanted_ != 0) tell_waiting();
    }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

   private:
    friend class Turns;
    Turns& turns_;
    const Call* const outer_;  // of this thread, of whatever module
  };

  /// Waits until no other thread calls. May be nested.
  class Alone {
   public:
    explicit Alone(Turns& turns);
    ~Alone();
    Alone(const Alone&) = delete;
    Alone& operator=(const Alone&) = delete;

   private:
    Turns& turns_;
  };

  int calls() const noexcept { return calls_; }

 private:
  static const void* this_thread() noexcept { return &innermost; }
  static void tell_waiting() noexcept;
  static bool may_go_on() noexcept;
  template <class Condition>
  static void wait(const Condition& is_free);
  bool is_open() const noexcept { return !owner_ || owner_ == this_thread(); }
  [[gnu::cold, gnu::noinline]] void wait_for_call();

  static __thread const Call* innermost __attribute__((tls_model("initial-exec")));

  int calls_ = 0;                 // in progress
  mutable int parked_ = 0;        // those among them whose thread waits
  int wanted_ = 0, waiting_ = 0;  // who are or want to be alone, and those among them who wait
  const void* owner_ = nullptr;   // the thread that is alone
  int depth_ = 0;                 // how often
  int held_ = 0;                  // calls that wait
  int passes_ = 0;                // those among them that go before anybody is alone again
};

}  // namespace fpt
