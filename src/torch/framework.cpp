// SPDX-License-Identifier: MIT
#include "torch/framework.hpp"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <vector>

#include "arrays/policy.hpp"
#include "base/cuda_driver.hpp"
#include "base/error.hpp"
#include "observe/observe.hpp"
#include "python/interpreter.hpp"
#include "python/ownership.hpp"

namespace fpt {
namespace {

Ref tuple_of(const int64_t* values, int32_t count) {
  Ref tuple = checked(PyTuple_New(count), "tuple");
  for (int32_t i = 0; i < count; ++i) PyTuple_SET_ITEM(tuple.get(), i, PyLong_FromLongLong(values[i]));
  return tuple;
}

struct NumPy {
  PyObject* ndarray;
  PyObject* dtypes[dtype_count] = {};  // null for types that NumPy does not have
};

const NumPy& numpy() {
  static NumPy* instance = nullptr;
  if (instance) return *instance;
  const std::string context =
      concat("NumPy, which arrays become for this script, could not be imported by ", interpreter_info().executable);
  const Ref module(PyImport_ImportModule("numpy"));
  if (!module) {
    const bool is_missing = PyErr_ExceptionMatches(PyExc_ImportError) != 0;
    try {
      throw_python_error(context);
    } catch (const Error& error) {
      throw Error(is_missing ? FPT_ERR_IMPORT : error.status(), error.text());
    }
  }
  Ref ndarray = checked(PyObject_GetAttrString(module.get(), "ndarray"), context);
  const Ref dtype = checked(PyObject_GetAttrString(module.get(), "dtype"), context);
  NumPy loaded{};
  for (int32_t i = FPT_BOOL; i < dtype_count; ++i)
    if (is_of_tensors(i) && i != FPT_BFLOAT16)
      loaded.dtypes[i] = checked(PyObject_CallFunction(dtype.get(), "s", dtype_name(i)), context).release();
  loaded.ndarray = ndarray.release();
  return *(instance = new NumPy(loaded));
}

/// Memory with an owner that is no Python object, as NumPy wants to see it.
struct OwnedMemory {
  PyObject head;
  std::shared_ptr<void> owner;
  Range range;

  static Ref make(std::shared_ptr<void> owner, const Range& range) {
    static PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(deallocate)},
                                  {Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)},
                                  {0, nullptr}};
    static PyType_Spec spec = {"_ftn_pytorch.OwnedMemory", sizeof(OwnedMemory), 0, Py_TPFLAGS_DEFAULT, slots};
    static PyObject* type = nullptr;
    if (!type) {  // making it may let go of the lock, so no other thread waits for it: see counts_are_proof()
      Ref made = checked(PyType_FromSpec(&spec), "a type of memory");
      if (!type) type = made.release();
    }
    Ref object = checked(PyType_GenericAlloc(reinterpret_cast<PyTypeObject*>(type), 0), "wrapping an array");
    auto* memory = reinterpret_cast<OwnedMemory*>(object.get());
    new (&memory->owner) std::shared_ptr<void>(std::move(owner));
    memory->range = range;
    return object;
  }

 private:
  static int get_buffer(PyObject* self, Py_buffer* view, int flags) {
    const Range& range = reinterpret_cast<OwnedMemory*>(self)->range;
    return PyBuffer_FillInfo(view, self, const_cast<char*>(range.begin), range.end - range.begin, 0, flags);
  }
  static void deallocate(PyObject* self) {
    PyTypeObject* type = Py_TYPE(self);
    reinterpret_cast<OwnedMemory*>(self)->owner.~shared_ptr();
    type->tp_free(self);
    Py_DECREF(type);
  }
};

ArrayObject make_numpy(const Array& array, std::shared_ptr<void> owned, bool read_only) {
  const NumPy& np = numpy();
  if (!np.dtypes[array.dtype]) fail(FPT_ERR_KIND, "NumPy has no type for ", dtype_fortran_name(array.dtype));
  const Range range = memory_range(array);
  ArrayObject made;
  char* begin = const_cast<char*>(range.begin);
  if (owned) {
    made.memory = OwnedMemory::make(std::move(owned), range);
  } else {
    made.memory = checked(PyMemoryView_FromMemory(begin, range.end - range.begin, read_only ? PyBUF_READ : PyBUF_WRITE),
                          "wrapping an array");
  }
  const Ref shape = tuple_of(array.extents, array.rank);
  const Ref strides = tuple_of(array.strides, array.rank);
  const Ref offset = checked(PyLong_FromLongLong(static_cast<char*>(array.data) - begin), "wrapping an array");
  PyObject* arguments[] = {shape.get(), np.dtypes[array.dtype], made.memory.get(), offset.get(), strides.get()};
  made.object = checked(PyObject_Vectorcall(np.ndarray, arguments, 5, nullptr), "wrapping an array");
  return made;
}

ArrayObject make_torch(const Array& array, std::shared_ptr<void> owned) {
  if (!has_plain_strides(array)) {
    Array plain = array;
    make_strides_plain(plain);
    return make_torch(plain, std::move(owned));
  }
  require_alignment(array);
  if (!array.device.is_host()) start_device(array.device);
  ArrayObject made;
  made.slot = dlpack::take_slot(array, std::move(owned));
  made.serial = made.slot->serial;
  made.object = torch_access::import_slot(made.slot);
  return made;
}

/// Type of the elements of a buffer: a letter of Python's module struct, after one for the byte order; 'Z' before that
/// of its parts for complex numbers.
int32_t dtype_of_format(const char* format, Py_ssize_t size) {
  if (!format) return FPT_UINT8;
  if (*format == '@' || *format == '=' || *format == '<') ++format;
  const bool complex = *format == 'Z';
  if (complex) ++format;
  if (format[0] == '\0' || format[1] != '\0') return FPT_NONE;
  const char letter = complex                         ? static_cast<char>(std::toupper(*format))
                      : std::strchr("bhilq", *format) ? 'i'
                                                      : *format;
  return find_dtype([&](const DtypeFacts& facts) {
    return facts.buffer_format == letter && facts.size == static_cast<std::size_t>(size);
  });
}

/// Whether the memory of an array object of NumPy is that of the program: the scripts of torch_in may not write to it,
/// and a pointer to it is one to a variable of the program.
bool is_of_program(PyObject* object) {
  Ref owner = Ref::borrow(object);
  while (owner && owner.get() != Py_None) {
    if (!PyMemoryView_Check(owner.get())) {
      owner = Ref(PyObject_GetAttrString(owner.get(), "base"));
    } else if (PyObject* viewed = PyMemoryView_GET_BUFFER(owner.get())->obj) {
      owner = Ref::borrow(viewed);
    } else {
      return true;
    }
  }
  PyErr_Clear();
  return false;
}

Array array_of_buffer(const Py_buffer& buffer) {
  require_passable_rank("an array", buffer.ndim);
  Array array;
  array.data = buffer.buf;
  array.rank = buffer.ndim;
  array.dtype = dtype_of_format(buffer.format, buffer.itemsize);
  if (array.dtype == FPT_NONE)
    fail(FPT_ERR_DTYPE, "an array of element type \"", buffer.format ? buffer.format : "",
         "\" (buffer format) has no counterpart in Fortran: convert it in the script");
  int64_t contiguous = buffer.itemsize;
  for (int i = buffer.ndim - 1; i >= 0; --i) {
    array.extents[i] = buffer.shape ? buffer.shape[i] : buffer.len / buffer.itemsize;
    array.strides[i] = buffer.strides ? buffer.strides[i] : contiguous;
    contiguous *= array.extents[i];
  }
  return array;
}

}  // namespace

ArrayObject make_array(Framework framework, const Array& array, std::shared_ptr<void> owned, bool read_only) {
  count_array();
  return framework == Framework::torch ? make_torch(array, std::move(owned))
                                       : make_numpy(array, std::move(owned), read_only);
}

void start_device(Device device) {
  static std::vector<Device>& started = *new std::vector<Device>;
  if (std::find(started.begin(), started.end(), device) != started.end()) return;
  const InterpreterLock gil;
  checked(PyObject_CallFunction(embed("start_device"), "s", device_name(device).c_str()), "using a device");
  started.push_back(device);
}

void wait_for(Device device) {
  const InterpreterLock gil;
  const CudaDriver* driver = known_cuda_driver();
  void* stream = nullptr;
  if (driver && driver->synchronize_stream && torch_access::current_stream(device, stream)) {
    const InterpreterPause others;
    if (driver->synchronize_stream(stream) == 0) return;
  }
  // says what is wrong
  checked(PyObject_CallFunction(embed("wait_for_device"), "s", device_name(device).c_str()), "waiting for a device");
}

bool is_retained(const ArrayObject& made) noexcept {
  if (made.slot) return made.slot->serial == made.serial && made.slot->alive.load(std::memory_order_acquire);
  return made.memory && holders_of(made.memory.get()) > 1;
}

bool is_unchanged(const ArrayObject& made, const Array& array, Framework framework) {
  if (!counts_are_proof() || holders_of(made.object.get()) != 1) return false;
  if (has_weak_references(made.object.get()) && !made.may_be_referred_to) return false;
  if (framework == Framework::torch) return torch_access::is_unchanged(made.object.get(), array);
  Py_buffer buffer;
  if (PyObject_GetBuffer(made.object.get(), &buffer, PyBUF_RECORDS_RO) != 0) {
    PyErr_Clear();
    return false;
  }
  bool unchanged = buffer.buf == array.data && buffer.ndim == array.rank &&
                   buffer.readonly == PyMemoryView_GET_BUFFER(made.memory.get())->readonly &&
                   dtype_of_format(buffer.format, buffer.itemsize) == array.dtype;
  for (int i = 0; unchanged && i < array.rank; ++i)
    unchanged = buffer.shape[i] == array.extents[i] && (buffer.strides[i] == array.strides[i] || array.extents[i] < 2);
  PyBuffer_Release(&buffer);
  return unchanged;
}

int64_t version_of(PyObject* object, Framework framework) {
  return framework == Framework::torch ? torch_access::version(object) : 0;
}

bool torch_is_imported() {
  static bool imported = false;  // nothing un-imports torch
  if (!imported) {
    PyObject* modules = PyImport_GetModuleDict();
    imported = modules && PyDict_GetItemString(modules, "torch") != nullptr;
  }
  return imported;
}

bool is_tensor(PyObject* object) { return torch_is_imported() && torch_access::is_tensor(object); }

bool view_plain_tensor(PyObject* object, View& view) {
  if (!torch_is_imported() || !torch_access::view_plain(object, view.array)) return false;
  view.keep = Ref::borrow(object);
  return true;
}

bool is_array(PyObject* object) {
  return is_tensor(object) || (PyObject_CheckBuffer(object) && !PyBytes_Check(object) && !PyByteArray_Check(object));
}

View view_of(PyObject* object) {
  View view;
  if (is_tensor(object)) {
    view.array = torch_access::view(object, view.keep);
    require_numbers(view.array.data, element_count(view.array));
    return view;
  }
  // a memoryview of the object holds the buffer for as long as the view lives
  view.keep = Ref(PyMemoryView_FromObject(object));
  if (!view.keep) {
    PyErr_Clear();
    fail(FPT_ERR_RESULT_TYPE, "an object of type ", Py_TYPE(object)->tp_name, " is no array");
  }
  const Py_buffer& buffer = *PyMemoryView_GET_BUFFER(view.keep.get());
  view.array = array_of_buffer(buffer);
  view.array.is_protected = buffer.readonly && !is_of_program(object);
  return view;
}

Array look_into(Ref& object) {
  View view;
  if (view_plain_tensor(object.get(), view)) return view.array;
  if (!is_tensor(object.get())) return view_of(object.get()).array;
  const std::string context = "looking into a tensor";
  const Ref looked = checked(PyObject_CallOneArg(embed("look_into"), object.get()), context);
  PyObject *shown = nullptr, *resolved = nullptr;
  if (!PyArg_ParseTuple(looked.get(), "OO", &shown, &resolved)) throw_python_error(context);
  view = view_of(shown);
  object = Ref::borrow(resolved);
  return view.array;
}

std::string torch_report() { return torch_is_imported() ? torch_access::describe() : "torch is not imported"; }

}  // namespace fpt
