// SPDX-License-Identifier: MIT
/// What arrays become for a script, and such objects kept between calls. With the interpreter lock held.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <unordered_map>
#include <vector>

#include "torch/framework.hpp"

namespace fpt {

/// What an array has to become for the script.
struct ScriptForm {
  Framework framework;
  bool same_layout;  ///< keep the axis order instead of reversing it
  int32_t dtype;     ///< element type the script gets; that of the array unless a conversion is wanted
  bool own_memory;   ///< copy the data into memory of the object
  bool read_only;
  bool may_be_referred_to = false;  ///< see ArrayObject

  bool copies(const Array& array) const noexcept {
    return own_memory || dtype != array.dtype || array.is_protected ||
           (framework == Framework::torch && is_misaligned(array.data, array.dtype));
  }
  Array in_script_order(const Array& array) const noexcept { return same_layout ? array : reversed(array); }
};

/// An array object on the memory of `array`, or on a converted copy of it (host memory only), with `seen` set to the
/// memory in Fortran axis order that the script works on. FPT_ERR_DEVICE, FPT_ERR_STRIDE.
[[nodiscard]] ArrayObject make_in_form(const Array& array, const ScriptForm& form, Array& seen);

/// Objects kept for one argument position of one function: making a tensor costs 0.25 us, finding it here 0.02 us.
///
/// Bounded. Beyond the first few, an array gets a place when it comes a second time, so objects of arrays that never
/// come again die while they are still in the processor's cache, which is three times as fast as later.
///
/// Only objects on the memory of the caller are kept. A copy may not be used twice: a script may hold on to its memory
/// in ways that no count shows, such as x.numpy().
class SlotCache {
 public:
  /// The object for `array`, whose device is the one where it is now, from the cache where it is still untouched, else
  /// made. For wishes that copy nothing.
  Ref get(const Array& array, const ScriptForm& form);

  /// The hot path: the cached object for an array that is passed as it is, if it is the one expected next; null where
  /// get() has to look closer, and for every other argument. Borrowed.
  PyObject* hit(const fpt_arg& arg, Framework framework) noexcept {
    Entry* entry = expected_;
    if (!entry || entry->array.data != arg.data || entry->head != head_of(arg) || arg.handle != 0 ||
        !has_axes(entry->array, arg.rank, arg.u.array.extents, arg.u.array.strides) ||
        !is_unchanged(entry->made, entry->script, framework))
      return nullptr;
    use(*entry);
    return entry->made.object.get();
  }

  /// Never use an object again.
  void forget(const PyObject* object) noexcept;

  static constexpr std::size_t max_entries = 1024;  // enough for a program that calls once per block of columns

 private:
  static constexpr uint64_t no_head = ~uint64_t{0};
  static constexpr std::size_t few = 16, max_remembered = 2048;

  struct Entry {
    Array array;              // what the caller described
    uint64_t head = 0;        // of the arguments that describe it so
    uint64_t key = 0;         // hash of both
    Entry* following = this;  // the one that was used after it: programs walk through their blocks in order
    ArrayObject made;
    Array script;  // the array in the order of the script
  };

  /// Element type, rank, access and status of an argument in one word.
  static uint64_t head_of(const fpt_arg& arg) noexcept {
    uint64_t head;
    static_assert(offsetof(fpt_arg, handle) == offsetof(fpt_arg, dtype) + sizeof head, "four neighbouring members");
    std::memcpy(&head, reinterpret_cast<const char*>(&arg) + offsetof(fpt_arg, dtype), sizeof head);
    return head;
  }
  static uint64_t head_of(const Array& array, bool read_only) noexcept;

  static bool has_axes(const Array& array, int32_t rank, const int64_t* extents, const int64_t* strides) noexcept {
    for (int32_t i = 0; i < rank; ++i)
      if (extents[i] != array.extents[i] || strides[i] != array.strides[i]) return false;
    return true;
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

  static uint64_t key_of(const Array& array, uint64_t head) noexcept;
  Entry* find(const Array& array, uint64_t head, uint64_t key) noexcept;
  /// Whether an array is to have a place: once that comes again, unless more of these come than have room.
  bool deserves_place(uint64_t key);
  /// A place for an array that has none, taken from the oldest one if need be.
  Entry& add(uint64_t key);

  std::deque<Entry> entries_;
  std::unordered_map<uint64_t, Entry*> by_key_;
  std::vector<uint64_t> remembered_;  // keys of arrays that were new, each at the place that its last bits name
  Entry *last_ = nullptr, *expected_ = nullptr;
  std::size_t oldest_ = 0, declined_ = 0;
  uint64_t changes_ = 0, chance_ = 0;
};

}  // namespace fpt
