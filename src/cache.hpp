// SPDX-License-Identifier: MIT
/// Array objects kept between calls, for one argument position of one function. Making a tensor costs 0.25 us, finding
/// it here 0.02 us.
#pragma once

#include <cstdint>
#include <vector>

#include "framework.hpp"

namespace fpt {

/// What an array has to become for the script.
struct Wish {
  Framework framework;
  bool same_layout;   ///< keep the axis order instead of reversing it
  int32_t dtype;      ///< element type the script gets; that of the array unless a conversion is wanted
  bool own_memory;    ///< copy the data into memory of the object
  bool read_only;
  bool thorough;      ///< check more than the reference count of a cached object

  bool copies(const Array& array) const noexcept { return own_memory || dtype != array.dtype; }
};

/// An array object on the memory of `array`, or on a converted copy of it, with `seen` set to the memory in Fortran
/// axis order that the script works on. FPT_ERR_DEVICE, FPT_ERR_STRIDE.
Made make_wished(const Array& array, const Wish& wish, Array& seen);

/// The way back after a call, for an array that was converted: elements that the script has changed. The others keep
/// their value, which the conversion may have rounded.
void write_back(const Array& seen, const Array& array);

/// Bounded: the oldest objects go first, so arrays of a new length in each call do not add up.
///
/// Only objects on the memory of the caller are kept. A copy may not be used twice: a script may hold on to its memory
/// in ways that no count shows, such as x.numpy().
class SlotCache {
 public:
  /// The object for `array`, from the cache where it is still untouched, else made. For wishes that copy nothing.
  Ref get(const Array& array, const Wish& wish);

  /// The hot path: the cached object for an array that is passed as it is, if it is the one expected next; null where
  /// get() has to look closer. Borrowed.
  PyObject* hit(const fpt_arg& arg, Framework framework, bool thorough) noexcept;

  std::size_t size() const noexcept { return entries_.size(); }

 private:
  struct Entry {
    Array array;   // what the caller described
    Array script;  // the same in the order of the script
    Made made;
    bool read_only;
  };

  Entry* find(const Array& array, bool read_only) noexcept;
  Entry& add(const Array& array);
  void expect_after(const Entry& entry) noexcept;

  std::vector<Entry> entries_;
  std::vector<const void*> addresses_;  // of the arrays, close together for the search
  std::size_t next_ = 0;                // the one expected next: programs walk through their blocks in order
  std::size_t oldest_ = 0;
  uint64_t changes_ = 0;
};

}  // namespace fpt
