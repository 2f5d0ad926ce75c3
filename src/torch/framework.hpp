// SPDX-License-Identifier: MIT
/// torch and NumPy: making an array object of memory, and looking into one. Everything runs with the interpreter lock.
///
/// Array arguments and results have their axes in the order the script sees.
#pragma once

#include <cstdint>
#include <memory>

#include "arrays/array.hpp"
#include "python/pyref.hpp"
#include "torch/dlpack.hpp"
#include "torch/torch_access.hpp"

namespace fpt {

enum class Framework { torch, numpy };

/// An array object made of memory of the caller, and what is needed to tell whether somebody kept it.
struct ArrayObject {
  Ref object;
  Ref memory;                    ///< NumPy: the owner of the memory, as NumPy sees it
  dlpack::Slot* slot = nullptr;  ///< torch
  uint64_t serial = 0;
  bool may_be_referred_to = false;  ///< by weak references, which code of this package has on what it has prepared
};

/// Wrap memory; nothing is copied. FPT_ERR_STRIDE for torch and strides that it cannot express;
/// FPT_ERR_DEVICE for memory of a device that torch cannot use.
/// @param owned      owner of the memory, let go with whatever refers to it; null for memory of the caller
/// @param read_only  NumPy refuses writing; torch has no such state
[[nodiscard]] ArrayObject make_array(Framework framework, const Array& array, std::shared_ptr<void> owned,
                                     bool read_only);

/// Let torch use memory of a device that it did not make. Once for each; FPT_ERR_DEVICE.
void start_device(Device device);

/// Until what torch was asked to do on its current stream of a device is done. Others may have the lock meanwhile.
void wait_for(Device device);

/// After our own reference is gone: does anything still refer to the memory?
[[nodiscard]] bool is_retained(const ArrayObject& made) noexcept;

/// True if a cached object is still exactly what was made of `array`: data, shape, strides, class, nothing of autograd,
/// no attribute that a script has set, no weak reference. Nobody else may hold it.
[[nodiscard]] bool is_unchanged(const ArrayObject& made, const Array& array, Framework framework);

/// Number of in-place changes torch has counted; always 0 for NumPy, which refuses them.
int64_t version_of(PyObject* object, Framework framework);

/// What an array object looks like from outside; `keep` must live as long as the view is used.
struct View {
  Array array;
  Ref keep;
};

/// Fill `view` if the object is a torch tensor, on the host or a GPU, that needs no further treatment: no subclass that
/// may intercept operations, no conjugate or negative bit. The usual result, and the fast way to look at it.
[[nodiscard]] bool view_plain_tensor(PyObject* object, View& view);

/// True for any torch tensor.
bool is_tensor(PyObject* object);

/// View of a torch tensor or of anything with the buffer protocol. FPT_ERR_RESULT_TYPE for other objects.
[[nodiscard]] View view_of(PyObject* object);

/// The memory of an array object as it is now; it is there until the object gets other memory or dies. No view shows a
/// conjugate or negative bit: where there is one, `object` becomes a tensor that has the values in its memory.
[[nodiscard]] Array look_into(Ref& object);

/// True if view_of() can be expected to work.
bool is_array(PyObject* object);

/// True once torch has been imported by somebody in this process.
bool torch_is_imported();

/// One line for diagnosis: "exchange API, functions of the extension".
std::string torch_report();

}  // namespace fpt
