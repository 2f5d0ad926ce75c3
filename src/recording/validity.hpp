// SPDX-License-Identifier: MIT
/// What a recording depends on, looked at before every run: arguments, names and fields, gradients, memory, modes.
/// All of it with the interpreter lock.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "ftr/tape.hpp"
#include "recording/torch.hpp"

namespace fpt::recording {

namespace py = pybind11;
using ftr::Argument, ftr::Branch, ftr::Formula, ftr::Frame, ftr::Operation, ftr::Tape;

/// Arguments of a call: containers of Python with tensors and other values in them.
class Signature {
 public:
  /// @param is_bare  tensors have no attributes of Python
  /// @param memory  tensors to which names lead, in tuples of one: whether an argument is one of them, code may ask
  Signature(const py::tuple& args, const py::dict& named, bool is_bare, const py::list& memory);
  /// The tensors of a call of the same containers, classes, shapes, strides, types, devices and other values.
  bool matches(PyObject* args, PyObject* named, std::vector<at::Tensor>& tensors) const;

  /// Hand each object of Python that it holds to a visitor.
  template <class Visit>
  void visit(const Visit& object) {
    for (Leaf& leaf : leaves_) object(leaf.value);
    for (py::object& key : keys_) object(key);
  }

 private:
  struct Leaf {
    py::object value;  ///< what is no tensor; or the class of one, which may have methods of its own
    c10::SmallVector<int64_t, 5> sizes, strides;
    c10::ScalarType type = c10::ScalarType::Undefined;
    c10::Device device = c10::kCPU;
    bool requires_grad = false, is_inference = false;
    std::size_t same_as = 0;  ///< index of what is this very tensor: of a name, or the first leaf behind these
  };
  struct Learning;
  struct Matching;

  std::vector<std::pair<int, Py_ssize_t>> containers_;
  std::vector<py::object> keys_;  ///< of dicts
  std::vector<Leaf> leaves_;
  std::vector<PyObject*> named_;  ///< which the recording holds
  bool is_bare_;
};

/// Something of Python that must stay as it is. `recording/binding.py` makes them, and says what key and value are.
struct Binding {
  enum class Kind : uint8_t { item, absent, cell, items, slot, class_of, fields, function, bases, kept };
  Kind kind;
  py::object holder, key, value;

  /// Calls no code of a user. Values are the same object, or equal numbers and texts of the same type.
  bool holds() const noexcept;
};

/// Switches of torch that decide which operators a function calls.
using Routes = std::array<int64_t, 11>;
Routes routes();

/// Those, and others that decide on which kernels operators run, and how precisely.
using Switches = std::array<int64_t, 30>;
Switches switches();

/// True where an autocast around the call keeps what is cast in it, so that a later call finds it. Torch does not tell:
/// to ask is to enter and to leave an autocast.
bool keeps_casts();

/// Modes of torch that decide on what a function does.
struct Modes {
  bool grad, inference, anomaly, casts_are_kept;
  at::ScalarType cpu_type, cuda_type;  ///< of autocast; undefined where it is off
  at::ScalarType default_type;
  int64_t functions;                  ///< modes of __torch_function__
  std::optional<c10::Device> device;  ///< that one of them makes tensors on
  Routes routes;

  /// `casts`: whether a call casts what an autocast may keep; where none is on, others do not ask for that.
  static Modes current(bool casts);
  bool operator==(const Modes& other) const noexcept;
  /// As Python compares them, with all switches.
  py::tuple in_python() const;
};

/// True where the calls of this thread go elsewhere before they are made: torch.vmap, modes of a script, hooks that
/// take what autograd saves.
bool is_intercepted();

/// The tensor behind an object of Python, which a program may give another one: nothing here keeps it.
inline const at::Tensor& behind(const py::object& tensor) { return THPVariable_Unpack(tensor.ptr()); }

/// Whether a hook waits for the gradient of a tensor: its own, or that of the node that adds to it.
bool is_waited_for(const at::Tensor& tensor);

/// The gradient of a parameter as the recorded function found it, and no hook that waits for it.
struct GradientBefore {
  py::object parameter;
  bool is_there;
  at::Tensor same;  ///< defined where the function read or wrote it

  bool holds() const;
};

/// The gradient of a parameter as the recorded function leaves it.
struct GradientAfter {
  py::object parameter;
  int32_t slot;            ///< -1: none
  std::size_t cleared_at;  ///< the operation before which the old one was taken away
};

/// A tensor from outside; its memory must stay, and whether gradients are wanted.
struct Memory {
  py::object tensor;
  const void* data;
  c10::SmallVector<int64_t, 5> sizes, strides;
  bool requires_grad;

  explicit Memory(py::object of);
  bool holds() const;
};

/// A number that the program may change: an item of a group of an optimizer, or a tensor that counts the steps.
struct Source {
  py::object group, key;
  Py_ssize_t item = -1;  ///< of a tuple
  at::Tensor counter;    ///< in place of an item
  int ahead = 0;         ///< how many steps it will have counted

  /// Empty where a number is no number any more, or has become zero, which changes what optimizers do.
  std::optional<double> read() const;
};

}  // namespace fpt::recording
