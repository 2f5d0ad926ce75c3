// SPDX-License-Identifier: MIT
#include "torch/torch_modes.hpp"

#include <atomic>

#include "arrays/dtype.hpp"
#include "base/switches.hpp"
#include "python/interpreter.hpp"
#include "torch/private_names.hpp"
#include "torch/torch_symbols.hpp"

namespace fpt {
namespace {

struct Readers {
  bool (*gradients)() = nullptr;
  bool (*inference)() = nullptr;
  bool (*autocast)(int8_t device) = nullptr;
  int8_t (*default_type)() = nullptr;
  const void* (*context)() = nullptr;
  bool (*deterministic)(const void* context) = nullptr;
  int64_t (*functions)() = nullptr;

  bool find() {
    using namespace torch_access;
    return find_function(gradients, c10_library, private_names::gradient_mode) &&
           find_function(inference, c10_library, private_names::is_inference_mode) &&
           find_function(default_type, c10_library, private_names::default_type) &&
           find_function(autocast, torch_library, private_names::autocast) &&
           find_function(context, torch_library, private_names::context) &&
           find_function(deterministic, torch_library, private_names::deterministic) &&
           find_function(functions, torch_library, private_names::function_modes);
  }

  void read(TorchModes& modes) const {
    constexpr int8_t host = 0, gpu = 1;  // c10::DeviceType
    modes = {gradients(),    inference(), autocast(host), autocast(gpu), deterministic(context()),
             default_type(), functions()};
  }
};

Readers made;
std::atomic<const Readers*> readers{nullptr};

/// What `made` tells, as texts and truths that Python compares with its own.
PyObject* tell(PyObject*, PyObject*) {
  TorchModes modes;
  made.read(modes);
  const int32_t type =
      find_dtype([&](const DtypeFacts& facts) { return facts.torch_scalar_type == modes.default_type; });
  return Py_BuildValue("NNNNNsL", PyBool_FromLong(modes.gradients), PyBool_FromLong(modes.inference),
                       PyBool_FromLong(modes.autocast_host), PyBool_FromLong(modes.autocast_gpu),
                       PyBool_FromLong(modes.deterministic), type == FPT_NONE ? "" : dtype_name(type),
                       static_cast<long long>(modes.functions));
}

bool is_right() {
  static PyMethodDef definition = {"tell", tell, METH_NOARGS, nullptr};
  const Ref teller(PyCFunction_New(&definition, nullptr));
  const Ref answer(teller ? PyObject_CallOneArg(embed("tells_modes"), teller.get()) : nullptr);
  if (!answer) PyErr_Clear();
  return answer.get() == Py_True;
}

}  // namespace

bool TorchModes::operator==(const TorchModes& other) const noexcept {
  return gradients == other.gradients && inference == other.inference && autocast_host == other.autocast_host &&
         autocast_gpu == other.autocast_gpu && deterministic == other.deterministic &&
         default_type == other.default_type && functions == other.functions;
}

bool TorchModes::is_plain() const noexcept {
  TorchModes plain;
  plain.gradients = gradients;
  return *this == plain;
}

bool read_torch_modes(TorchModes& modes) noexcept {
  const Readers* found = readers.load(std::memory_order_acquire);
  if (found) found->read(modes);
  return found != nullptr;
}

void find_torch_modes() {
  static bool is_looked_for = false;
  if (is_looked_for) return;
  is_looked_for = true;
  if (!is_switched_off("FTN_PYTORCH_CPP_FUNCTIONS") && made.find() && is_right())
    readers.store(&made, std::memory_order_release);
}

}  // namespace fpt
