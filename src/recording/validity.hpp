// SPDX-License-Identifier: MIT
/// What a recording depends on, looked at before every run: arguments, names and fields, gradients, memory, modes.
/// All of it with the interpreter lock.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "recording/torch.hpp"

namespace fpt::recording {

namespace py = pybind11;

/// Arguments of a call: containers of Python with tensors and other values in them.
class Signature {
 public:
  Signature(const py::tuple& args, const py::dict& named);
  /// The tensors of a call of the same containers, shapes, strides, types, devices and other values.
  bool matches(PyObject* args, PyObject* named, std::vector<at::Tensor>& tensors) const;

 private:
  struct Leaf {
    py::object value;  ///< what is no tensor
    c10::SmallVector<int64_t, 5> sizes, strides;
    c10::ScalarType type = c10::ScalarType::Undefined;
    c10::Device device = c10::kCPU;
    bool requires_grad = false;
    std::size_t same_as = 0;  ///< index of the first leaf that is this very tensor
  };
  struct Learning;
  struct Matching;

  std::vector<std::pair<int, Py_ssize_t>> containers_;
  std::vector<py::object> keys_;  ///< of dicts
  std::vector<Leaf> leaves_;
};

/// A name, an item or a field that must go on to mean what it meant. Containers are dicts, lists and cells; without a
/// key, it is their length.
struct Binding {
  py::object container, key, value;
  bool holds() const noexcept;
};

/// Modes of torch that decide on what a function does.
struct Modes {
  bool grad, inference, autocast_cpu, autocast_cuda;
  at::ScalarType cpu_type, cuda_type;

  static Modes current();
  bool operator==(const Modes& other) const noexcept;
};

/// True where the calls of this thread go elsewhere before they are made: torch.vmap, modes of a script.
bool is_intercepted();

/// The gradient of a parameter as the recorded function found it.
struct GradientBefore {
  at::Tensor parameter;
  bool is_there;
  at::Tensor same;  ///< defined where the function read or wrote it

  bool holds() const;
};

/// A tensor from outside; its memory must stay.
struct Memory {
  at::Tensor tensor;
  const void* data;
  c10::SmallVector<int64_t, 5> sizes;

  explicit Memory(at::Tensor of);
  bool holds() const;
};

/// A number that the program may change, as it enters an operator.
struct Number {
  enum class Form : uint8_t { itself, negative, complement, decay };  ///< p, -p, 1 - p, 1 - p q
  struct Source {
    py::object group, key;
    Py_ssize_t item = -1;  ///< of a tuple

    std::optional<double> read() const noexcept;
  };
  Form form;
  Source p, q;

  /// Empty where a number is no number any more, or has become zero, which changes what optimizers do.
  std::optional<double> read() const noexcept;
};

}  // namespace fpt::recording
