// SPDX-License-Identifier: MIT
#include "script/turns.hpp"

#include <condition_variable>
#include <mutex>

#include "python/interpreter.hpp"

namespace fpt {
namespace {

/// Counts what may let a waiting thread go on. Its mutex is never held while the interpreter lock is waited for.
struct Changes {
  std::mutex mutex;
  std::condition_variable condition;
  uint64_t count = 0;
};

/// Threads may wait when the process ends.
Changes& changes() {
  static Changes& made = *new Changes;
  return made;
}

}  // namespace

__thread const Turns::Call* Turns::innermost = nullptr;

void Turns::tell_waiting() noexcept {
  {
    const std::lock_guard lock(changes().mutex);
    ++changes().count;
  }
  changes().condition.notify_all();
}

/// True if nobody is alone in a module that this thread is calling.
bool Turns::may_go_on() noexcept {
  for (const Call* call = innermost; call; call = call->outer_)
    if (!call->turns_.is_open()) return false;
  return true;
}

template <class Condition>
void Turns::wait(const Condition& is_free) {
  for (const Call* call = innermost; call; call = call->outer_) ++call->turns_.parked_;
  if (innermost) tell_waiting();
  while (!is_free() || !may_go_on()) {
    std::unique_lock lock(changes().mutex);
    const uint64_t seen = changes().count;
    const InterpreterPause pause;
    changes().condition.wait(lock, [&] { return changes().count != seen; });
    lock.unlock();
  }
  for (const Call* call = innermost; call; call = call->outer_) --call->turns_.parked_;
}

void Turns::wait_for_call() {
  ++held_;
  wait([&] { return owner_ ? is_open() : waiting_ == 0 || innermost || passes_ > 0; });
  --held_;
  if (passes_ > 0) --passes_;
}

Turns::Alone::Alone(Turns& turns) : turns_(turns) {
  ++turns.wanted_;
  ++turns.waiting_;
  wait([&] { return turns.calls_ == turns.parked_ && turns.is_open() && (turns.passes_ == 0 || turns.owner_); });
  --turns.waiting_;
  turns.owner_ = this_thread();
  ++turns.depth_;
}

Turns::Alone::~Alone() {
  --turns_.wanted_;
  if (--turns_.depth_ == 0) {
    turns_.owner_ = nullptr;
    turns_.passes_ = turns_.held_;
  }
  tell_waiting();
}

}  // namespace fpt
