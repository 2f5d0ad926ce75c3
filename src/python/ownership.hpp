// SPDX-License-Identifier: MIT
/// Counts of references as proof that nobody else holds an object, and what somebody may have left with it. The only
/// place that reads them. With the interpreter lock held.
#pragma once

#include "python/pyref.hpp"

namespace fpt {

/// Number of references to an object, those of the caller included.
inline Py_ssize_t holders_of(PyObject* object) noexcept { return Py_REFCNT(object); }

/// Whether this Python counts every reference when it is made and when it ends. Where it does not (without an
/// interpreter lock counts are put off), no count proves anything.
inline bool counts_when_tried() noexcept {
  const Ref object(PyList_New(0));
  if (!object || holders_of(object.get()) != 1) return PyErr_Clear(), false;
  bool follows = false;
  if (const Ref pair(PyTuple_Pack(2, object.get(), object.get())); pair) follows = holders_of(object.get()) == 3;
  PyErr_Clear();
  return follows && holders_of(object.get()) == 1;
}

/// The same, tried once. Not in the initialiser of a static: making objects may run finalizers, which let go of the
/// lock, and a thread that then waited for the static would hold it.
inline bool counts_are_proof() noexcept {
  static int known = -1;
  if (known < 0) known = counts_when_tried();
  return known != 0;
}

/// Whether an object has attributes of its own, beside those of its class.
inline bool has_attributes(PyObject* object) noexcept {
  PyObject* const* attributes = _PyObject_GetDictPtr(object);
  return attributes && *attributes && PyDict_GET_SIZE(*attributes) > 0;
}

/// Whether a weak reference to an object is alive, which a dictionary with weak keys also has.
inline bool has_weak_references(PyObject* object) noexcept {
  return Py_TYPE(object)->tp_weaklistoffset != 0 && *PyObject_GET_WEAKREFS_LISTPTR(object);
}

}  // namespace fpt
