// SPDX-License-Identifier: MIT
/// Owned references to Python objects, without the checks of pybind11: for the hot path.
#pragma once

#include <Python.h>

#include <utility>

namespace fpt {

/// One reference to a Python object, or none. Copying and destroying need the interpreter lock.
class Ref {
 public:
  Ref() noexcept = default;
  /// Take over a new reference.
  explicit Ref(PyObject* owned) noexcept : object_(owned) {}
  static Ref borrow(PyObject* object) noexcept {
    Py_XINCREF(object);
    return Ref(object);
  }
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Ref(const Ref& other) noexcept : object_(other.object_) { Py_XINCREF(object_); }
  Ref& operator=(Ref other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() { Py_XDECREF(object_); }

  PyObject* get() const noexcept { return object_; }
  PyObject* release() noexcept { return std::exchange(object_, nullptr); }
  explicit operator bool() const noexcept { return object_ != nullptr; }

 private:
  PyObject* object_ = nullptr;
};

}  // namespace fpt
