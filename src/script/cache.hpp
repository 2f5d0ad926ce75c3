// SPDX-License-Identifier: MIT
/// Array objects kept between calls, for one argument position of one function. Making a tensor costs 0.25 us, finding
/// it here 0.02 us.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>

#include "torch/framework.hpp"
#include "torch/tensor_image.hpp"

namespace fpt {

/// What an array has to become for the script.
struct Wish {
  Framework framework;
  bool same_layout;   ///< keep the axis order instead of reversing it
  int32_t dtype;      ///< element type the script gets; that of the array unless a conversion is wanted
  bool own_memory;    ///< copy the data into memory of the object
  bool read_only;

  bool copies(const Array& array) const noexcept { return own_memory || dtype != array.dtype; }
};

/// An array object on the memory of `array`, or on a converted copy of it, with `seen` set to the memory in Fortran
/// axis order that the script works on. FPT_ERR_DEVICE, FPT_ERR_STRIDE.
Made make_wished(const Array& array, const Wish& wish, Array& seen);

/// The way back after a call, for an array that was converted: elements that the script has changed. The others keep
/// their value, which the conversion may have rounded.
void write_back(const Array& seen, const Array& array);

/// Bounded: the oldest object goes, or moves to the array that comes, so arrays of a new length in each call do not add up.
///
/// Only objects on the memory of the caller are kept. A copy may not be used twice: a script may hold on to its memory
/// in ways that no count shows, such as x.numpy().
class SlotCache {
 public:
  /// The object for `array`, from the cache where it is still untouched, else made. For wishes that copy nothing.
  Ref get(const Array& array, const Wish& wish);

  /// The hot path: the cached object for an array that is passed as it is, if it is the one expected next; null where
  /// get() has to look closer, and for every other argument. Borrowed.
  PyObject* hit(const fpt_arg& arg, Framework framework) noexcept {
    Entry* entry = expected_;
    if (!entry || entry->array.data != arg.data || entry->head != head_of(arg) || arg.handle != 0 ||
        !has_axes(entry->array, arg.rank, arg.u.array.extents, arg.u.array.strides) ||
        !is_untouched(*entry, framework))
      return nullptr;
    use(*entry);
    return entry->made.object.get();
  }

  std::size_t size() const noexcept { return entries_.size(); }

 private:
  static constexpr std::size_t max_entries = 64;  // enough for a program that calls once per block of columns

  struct Entry {
    Array array;              // what the caller described
    uint64_t head;            // of the arguments that describe it so
    Entry* following = this;  // the one that was used after it: programs walk through their blocks in order
    Made made;
    TensorImage image;        // torch
    Array script;             // the array in the order of the script
  };

  /// Element type, rank, access and status of an argument in one word.
  static uint64_t head_of(const fpt_arg& arg) noexcept {
    uint64_t head;
    static_assert(offsetof(fpt_arg, handle) == offsetof(fpt_arg, dtype) + sizeof head, "four neighbouring members");
    std::memcpy(&head, reinterpret_cast<const char*>(&arg) + offsetof(fpt_arg, dtype), sizeof head);
    return head;
  }
  static uint64_t head_of(const Array& array, bool read_only) noexcept;
  /// Low bits of an address, without those that the alignment of arrays leaves zero.
  static uint32_t tag_of(const void* address) noexcept {
    return static_cast<uint32_t>(reinterpret_cast<std::uintptr_t>(address) >> 2);
  }

  static bool has_axes(const Array& array, int32_t rank, const int64_t* extents, const int64_t* strides) noexcept {
    for (int32_t i = 0; i < rank; ++i)
      if (extents[i] != array.extents[i] || strides[i] != array.strides[i]) return false;
    return true;
  }
  /// Nobody else holds the object, and it is what it was.
  static bool is_untouched(const Entry& entry, Framework framework) noexcept {
    if (framework == Framework::torch && Py_REFCNT(entry.made.object.get()) == 1 &&
        entry.image.matches(entry.made.object.get()))
      return true;
    return is_unchanged(entry.made, entry.script, framework);
  }

  void use(Entry& entry) noexcept {
    last_ = &entry;
    expected_ = entry.following;
  }
  /// Use an entry that was not expected, and expect it the next time.
  void learn(Entry& entry) noexcept {
    if (last_) last_->following = &entry;
    use(entry);
  }

  Entry* find(const Array& array, uint64_t head) noexcept;
  /// The place of the entry that goes when there is no room for another one.
  std::size_t oldest() const noexcept { return oldest_ + 1 < entries_.size() ? oldest_ + 1 : 0; }
  Entry& add(const Array& array);
  /// The oldest entry with its tensor moved to `array`; null where there is room, or a tensor has to be made.
  Entry* move_oldest(const Array& array, uint64_t head, const Wish& wish) noexcept;

  std::deque<Entry> entries_;
  alignas(16) uint32_t tags_[max_entries] = {};  // of the addresses of the arrays, close together for the search
  Entry *last_ = nullptr, *expected_ = nullptr;
  std::size_t oldest_ = 0;
  uint64_t changes_ = 0;
};

}  // namespace fpt
