// SPDX-License-Identifier: MIT
/// Owned references to Python objects, without the checks of pybind11: for the hot path. And the exception that is set.
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

/// Take the exception that is set, with its traceback; nothing where there is none.
[[nodiscard]] inline Ref take_exception() noexcept {
#if PY_VERSION_HEX >= 0x030C0000
  return Ref(PyErr_GetRaisedException());
#else
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  if (type) PyErr_NormalizeException(&type, &value, &traceback);
  const Ref owned_type(type), owned_traceback(traceback);
  if (value && traceback) PyException_SetTraceback(value, traceback);
  return Ref(value);
#endif
}

/// Set it again; clears where there is none.
inline void set_exception(Ref exception) noexcept {
#if PY_VERSION_HEX >= 0x030C0000
  PyErr_SetRaisedException(exception.release());
#else
  PyObject* type = exception ? reinterpret_cast<PyObject*>(Py_TYPE(exception.get())) : nullptr;
  Py_XINCREF(type);
  PyObject* traceback = exception ? PyException_GetTraceback(exception.get()) : nullptr;
  PyErr_Restore(type, exception.release(), traceback);
#endif
}

/// The exception that is set, if any, kept aside while this lives, and set again in place of any other.
class KeptException {
 public:
  KeptException() noexcept : exception_(take_exception()) {}
  ~KeptException() { set_exception(std::move(exception_)); }
  KeptException(const KeptException&) = delete;
  KeptException& operator=(const KeptException&) = delete;
  /// Null without one.
  PyObject* get() const noexcept { return exception_.get(); }

 private:
  Ref exception_;
};

/// Arguments of a vectorcall as Python would collect them. Without memory some are missing, and the exception is set.
struct Passed {
  Passed(PyObject* const* args, Py_ssize_t count, PyObject* names)
      : positional(PyTuple_New(count)), named(PyDict_New()) {
    for (Py_ssize_t i = 0; positional && i < count; ++i) {
      Py_INCREF(args[i]);
      PyTuple_SET_ITEM(positional.get(), i, args[i]);
    }
    const Py_ssize_t keywords = names ? PyTuple_GET_SIZE(names) : 0;
    for (Py_ssize_t i = 0; named && i < keywords; ++i)
      PyDict_SetItem(named.get(), PyTuple_GET_ITEM(names, i), args[count + i]);
  }
  Ref positional, named;
};

}  // namespace fpt
