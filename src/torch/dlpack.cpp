// SPDX-License-Identifier: MIT
#include "torch/dlpack.hpp"

#include <utility>

#include "arrays/policy.hpp"
#include "base/error.hpp"

namespace fpt::dlpack {
namespace {

// Any thread pushes (deleters), one thread at a time pops (under the interpreter lock): free of ABA trouble.
std::atomic<Slot*> free_slots{nullptr};
uint64_t latest_serial = 0;
Slot* all_slots = nullptr;

void release(Slot* slot) noexcept {
  slot->owned.reset();
  slot->alive.store(false, std::memory_order_release);
  Slot* head = free_slots.load(std::memory_order_relaxed);
  do {
    slot->next = head;
  } while (!free_slots.compare_exchange_weak(head, slot, std::memory_order_release, std::memory_order_relaxed));
}

/// What is the same for all arrays that a slot carries.
Slot* new_slot() {
  auto* slot = new Slot();
  slot->older = std::exchange(all_slots, slot);
  slot->versioned.version = {1, 0};
  slot->versioned.context = slot;
  slot->versioned.deleter = [](ManagedVersioned* self) { release(static_cast<Slot*>(self->context)); };
  Tensor& tensor = slot->versioned.tensor;
  tensor.shape = slot->shape;
  tensor.strides = slot->strides;
  return slot;
}

Slot* pop() {
  Slot* head = free_slots.load(std::memory_order_acquire);
  while (head && !free_slots.compare_exchange_weak(head, head->next, std::memory_order_acquire)) {
  }
  return head ? head : new_slot();
}

}  // namespace

Slot* take_slot(const Array& array, std::shared_ptr<void> owned) {
  Slot* slot = pop();
  Tensor& tensor = slot->versioned.tensor;
  tensor.data = array.data;
  tensor.device = array.device;
  tensor.ndim = array.rank;
  tensor.dtype = data_type(array.dtype);
  // the size of an element is a power of two, and dividing takes longer than all the rest
  const int shift = __builtin_ctz(tensor.dtype.bits / 8u);
  for (int i = 0; i < array.rank; ++i) {
    slot->shape[i] = array.extents[i];
    slot->strides[i] = array.strides[i] >> shift;
  }
  slot->owned = std::move(owned);
  slot->is_of_caller = !slot->owned;
  slot->serial = ++latest_serial;
  slot->alive.store(true, std::memory_order_relaxed);
  return slot;
}

uint64_t last_serial() noexcept { return latest_serial; }

bool is_in_memory_of_caller(const void* address, uint64_t serial) {
  for (const Slot* slot = all_slots; slot; slot = slot->older) {
    if (slot->serial <= serial || !slot->is_of_caller || !slot->alive.load(std::memory_order_acquire)) continue;
    const Range memory = memory_range(array_of(slot->versioned.tensor));
    if (memory.begin <= address && address < memory.end) return true;
  }
  return false;
}

void drop_slot(Slot* slot) noexcept { release(slot); }

DataType data_type(int32_t dtype) noexcept {
  const DtypeFacts& facts = dtype_facts(dtype);
  return {facts.dlpack_code, static_cast<uint8_t>(8 * facts.size), 1};
}

int32_t dtype_of(DataType type) noexcept {
  return find_dtype([type](const DtypeFacts& facts) {
    return type.code == facts.dlpack_code && type.bits == 8 * facts.size && type.lanes == 1;
  });
}

Array array_of(const Tensor& tensor) {
  require_passable_rank("a tensor", tensor.ndim);
  Array array;
  array.data = static_cast<char*>(tensor.data) + tensor.byte_offset;
  array.dtype = dtype_of(tensor.dtype);
  array.rank = tensor.ndim;
  array.device = tensor.device;
  if (array.dtype == FPT_NONE)
    fail(FPT_ERR_DTYPE, "a tensor of element type ", int(tensor.dtype.code), "/", int(tensor.dtype.bits),
         " bits (DLPack code) has no counterpart in Fortran: convert it in the script, for example with "
         ".to(torch.float32)");
  const int64_t size = static_cast<int64_t>(dtype_size(array.dtype));
  int64_t contiguous = size;
  for (int i = tensor.ndim - 1; i >= 0; --i) {
    array.extents[i] = tensor.shape[i];
    array.strides[i] = tensor.strides ? tensor.strides[i] * size : contiguous;
    contiguous *= tensor.shape[i];
  }
  return array;
}

}  // namespace fpt::dlpack
