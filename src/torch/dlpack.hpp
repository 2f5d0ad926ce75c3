// SPDX-License-Identifier: MIT
/// DLPack: the structs of its specification (version 1.3, https://dmlc.github.io/dlpack/latest/c_api.html) under our
/// own names, and the slots that carry the caller's memory into torch. Knows nothing of Python.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "arrays/array.hpp"

namespace fpt::dlpack {

struct DataType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;

  friend bool operator==(DataType a, DataType b) noexcept {
    return a.code == b.code && a.bits == b.bits && a.lanes == b.lanes;
  }
};

struct Tensor {
  void* data;
  Device device;
  int32_t ndim;
  DataType dtype;
  int64_t* shape;
  int64_t* strides;  // in elements
  uint64_t byte_offset;
};

struct Version {
  uint32_t major, minor;
};

struct ManagedVersioned {
  Version version;
  void* context;
  void (*deleter)(ManagedVersioned* self);
  uint64_t flags;
  Tensor tensor;
};

/// Table behind torch.Tensor.__dlpack_c_exchange_api__ (torch 2.10 and later). Functions return 0, or -1 with a Python
/// error set. to_py_object takes the tensor over and returns a new reference; view fills a tensor that borrows.
struct ExchangeApi {
  struct {
    Version version;
    ExchangeApi* previous;
  } header;
  int (*allocate)(Tensor* prototype, ManagedVersioned** out, void* context,
                  void (*set_error)(void*, const char*, const char*));
  int (*from_py_object)(void* object, ManagedVersioned** out);
  int (*to_py_object)(ManagedVersioned* tensor, void** out);
  int (*view)(void* object, Tensor* out);
  int (*current_stream)(int32_t device_type, int32_t device_id, void** stream);
};

/// Carries one array into torch. Torch copies shape and strides, so a slot is free again once the last tensor that
/// shares the storage has died; that may be on any thread and without Python's lock. Slots are never returned to the
/// system: torch keeps their address.
struct Slot {
  ManagedVersioned versioned;
  int64_t shape[FPT_MAX_RANK];
  int64_t strides[FPT_MAX_RANK];
  std::atomic<bool> alive{false};
  uint64_t serial = 0;  // tells apart the arrays a slot has carried
  std::shared_ptr<void> owned;
  bool is_of_caller = false;
  Slot* next = nullptr;
  Slot* older = nullptr;  // in the list of all slots
};

/// A slot filled with `array`, axes in the order the script sees. With the interpreter lock held.
/// @param owned  let go with the last tensor; null for memory of the caller
FPT_API Slot* take_slot(const Array& array, std::shared_ptr<void> owned);

/// Serial of the array that was carried last.
FPT_API uint64_t last_serial() noexcept;
/// Whether an address lies in memory of the caller that torch still refers to and that was carried after `serial`. With
/// the interpreter lock held, as above.
FPT_API bool is_in_memory_of_caller(const void* address, uint64_t serial);

/// Give back a slot that torch did not take.
FPT_API void drop_slot(Slot* slot) noexcept;

FPT_API DataType data_type(int32_t dtype) noexcept;

/// FPT_NONE for a type that no array of ours can have.
int32_t dtype_of(DataType type) noexcept;

/// Shape and strides, the latter in elements, are those of an array. The stride of a single element may be anything.
inline bool has_axes(const Array& array, const int64_t* shape, const int64_t* strides) noexcept {
  const auto size = static_cast<int64_t>(dtype_size(array.dtype));
  for (int i = 0; i < array.rank; ++i)
    if (shape[i] != array.extents[i] || (shape[i] > 1 && strides[i] * size != array.strides[i])) return false;
  return true;
}

/// View of a tensor, axes as the script sees them. FPT_ERR_RANK, FPT_ERR_DTYPE.
FPT_API Array array_of(const Tensor& tensor);

}  // namespace fpt::dlpack
