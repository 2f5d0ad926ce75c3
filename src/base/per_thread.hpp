// SPDX-License-Identifier: MIT
/// Objects of threads that outlive exit(). Knows nothing of Python.
#pragma once

#include <pthread.h>

namespace fpt {

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
    static const pthread_key_t key = [] {
      pthread_key_t made{};
      pthread_key_create(&made, destroy);
      return made;
    }();
    object_ = new T;
    pthread_setspecific(key, object_);
  }
  static void destroy(void* object) {
    object_ = nullptr;
    delete static_cast<T*>(object);
  }

  static inline thread_local T* object_ = nullptr;
};

}  // namespace fpt
