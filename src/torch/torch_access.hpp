// SPDX-License-Identifier: MIT
/// How torch is reached without linking it: DLPack for making tensors and seeing their memory, functions of the
/// extension (base/tensor_looks.hpp) for looking into cached ones; where that is not built for this torch, Python.
///
/// FTN_PYTORCH_CPP_FUNCTIONS=0 leaves the extension out, for tests and for finding faults.
#pragma once

#include <string>

#include "arrays/array.hpp"
#include "base/tensor_looks.hpp"
#include "ftn_pytorch.h"
#include "python/pyref.hpp"
#include "torch/dlpack.hpp"

namespace fpt::torch_access {

bool is_tensor(PyObject* object);
/// A torch.Tensor or a Parameter itself, of no class derived from them.
bool is_plain_tensor(PyObject* object);

/// View of a torch.Tensor or Parameter itself, on the host or a GPU, with neither the conjugate nor the negative bit
/// set, which the view of DLPack ignores. False for every other object, and where the exchange API is missing.
bool view_plain(PyObject* object, Array& array);

/// A tensor on the memory of a slot; torch takes the slot over. FPT_ERR_VERSION before torch 2.10.
Ref import_slot(dlpack::Slot* slot);

/// View of a strided tensor; `keep` receives what must live as long as the view.
Array view(PyObject* tensor, Ref& keep);

/// Data pointer, element type, shape and strides are those of `array`, the class is torch.Tensor, and neither autograd
/// nor a script has attached anything.
bool is_unchanged(PyObject* tensor, const Array& array);

/// Number of in-place changes that torch has counted; 0 for a tensor of inference mode, whose changes it does not
/// count.
int64_t version(PyObject* tensor);
/// Whether that takes nanoseconds, so that every call can ask.
bool tells_version_at_once() noexcept;
/// Position of the first of `count` tensors that has been changed since it was made, -1 if there is none. Those whose
/// place in `watched` is null are not looked at.
int first_changed(PyObject* const* tensors, const fpt_arg* const* watched, int count);

/// The stream (cudaStream_t) on which torch works on a device; false where torch does not tell.
bool current_stream(Device device, void*& stream);

/// Look once for what tells the modes, after torch was imported; with the interpreter lock.
void find_modes();
/// The modes now, without the interpreter lock. False where nothing tells them.
bool read_modes(TorchModes& modes) noexcept;

/// Which of the ways are in use.
std::string describe();

}  // namespace fpt::torch_access
