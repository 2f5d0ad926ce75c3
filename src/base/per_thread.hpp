// SPDX-License-Identifier: MIT
/// Objects of threads that outlive exit(). Knows nothing of Python.
#pragma once

#include <pthread.h>

#include <optional>

namespace fpt {

/// A key with whose values `destroy` is called at the end of their threads. None where the process has no key left:
/// what belongs to a thread then stays when that ends.
inline std::optional<pthread_key_t> key_of_thread_ends(void (*destroy)(void*)) noexcept {
  pthread_key_t made{};
  return pthread_key_create(&made, destroy) == 0 ? std::optional(made) : std::nullopt;
}

/// An object for each thread, made when the thread first asks for it, and destroyed with the thread.
///
/// No thread_local object: exit() destroys those of its thread before exit functions run, Python's among them, which
/// call the library again. It leaves keys alone.
template <class T>
class PerThread {
 public:
  static T& get() {
    if (!object_) make();
    return *object_;
  }
  /// Null where the thread has none.
  static T* find() noexcept { return object_; }

 private:
  static void make() {
    static const std::optional<pthread_key_t> key = key_of_thread_ends(destroy);
    object_ = new T;
    if (key) pthread_setspecific(*key, object_);
  }
  static void destroy(void* object) {
    object_ = nullptr;
    delete static_cast<T*>(object);
  }

  static inline thread_local T* object_ = nullptr;
};

}  // namespace fpt
