// SPDX-License-Identifier: MIT
#include "cache.hpp"

#include <algorithm>

#include "copy.hpp"
#include "device.hpp"
#include "error.hpp"

namespace fpt {
namespace {

// Enough for a program that calls once per block of columns; converted copies own memory, so there are fewer.
constexpr std::size_t max_entries = 64;
constexpr std::size_t max_copies = 4;

bool same_axes(int32_t rank, const int64_t* extents, const int64_t* strides, const Array& array) noexcept {
  for (int32_t i = 0; i < rank; ++i)
    if (extents[i] != array.extents[i] || strides[i] != array.strides[i]) return false;
  return true;
}

Array in_script_order(const Array& array, bool same_layout) noexcept { return same_layout ? array : reversed(array); }

}  // namespace

Made make_wished(const Array& array, const Wish& wish, Array& seen) {
  if (is_device_memory(array.data))
    fail(FPT_ERR_DEVICE, "the array is in device memory, which this version cannot hand to Python: ",
         "update the host copy and pass that, without use_device");
  seen = array;
  Storage storage;
  if (wish.copies(array)) {
    seen.dtype = wish.dtype;
    set_contiguous(seen);
    storage = allocate(static_cast<std::size_t>(element_count(seen)) * dtype_size(seen.dtype));
    seen.data = storage.get();
    copy(array, seen);
  }
  const bool owns = storage != nullptr;
  Made made = make_array(wish.framework, in_script_order(seen, wish.same_layout), std::move(storage),
                         wish.read_only && !owns);
  if (owns && wish.framework == Framework::numpy) {
    // NumPy has taken a copy of its own
    const View view = view_of(made.object.get());
    seen.data = view.array.data;
  }
  return made;
}

PyObject* SlotCache::hit(const fpt_arg& arg, Framework framework, bool thorough) noexcept {
  const std::size_t count = entries_.size();
  for (std::size_t step = 0, index = next_; step < count; ++step, ++index) {
    if (index >= count) index = 0;
    Entry& entry = entries_[index];
    if (entry.array.data != arg.data || entry.array.dtype != arg.dtype || entry.array.rank != arg.rank ||
        entry.read_only != (arg.access == FPT_IN) || entry.seen.data != arg.data ||
        !same_axes(arg.rank, arg.u.array.extents, arg.u.array.strides, entry.array))
      continue;
    if (!is_unchanged(entry.made, entry.script, framework, thorough)) return nullptr;
    next_ = index + 1 < count ? index + 1 : 0;
    entry.used = ++clock_;
    return entry.made.object.get();
  }
  return nullptr;
}

SlotCache::Entry* SlotCache::find(const Array& array, int32_t dtype, bool read_only) noexcept {
  for (Entry& entry : entries_)
    if (entry.array.data == array.data && entry.array.dtype == array.dtype && entry.array.rank == array.rank &&
        entry.read_only == read_only && entry.seen.dtype == dtype &&
        same_axes(array.rank, array.extents, array.strides, entry.array))
      return &entry;
  return nullptr;
}

std::size_t SlotCache::place(const Wish& wish, const Array& array) {
  const std::size_t limit = wish.copies(array) ? max_copies : max_entries;
  if (entries_.size() < limit) {
    entries_.emplace_back();
    return entries_.size() - 1;
  }
  const auto oldest = std::min_element(entries_.begin(), entries_.end(),
                                       [](const Entry& a, const Entry& b) { return a.used < b.used; });
  return static_cast<std::size_t>(oldest - entries_.begin());
}

Ref SlotCache::get(const Array& array, const Wish& wish, Array& seen) {
  Entry* known = find(array, wish.dtype, wish.read_only);
  if (known && is_unchanged(known->made, known->script, wish.framework, wish.thorough)) {
    if (wish.copies(array)) copy(array, known->seen);
    known->used = ++clock_;
    seen = known->seen;
    return known->made.object;
  }
  Made made = make_wished(array, wish, seen);
  known = find(array, wish.dtype, wish.read_only);
  Entry& entry = known ? *known : entries_[place(wish, array)];
  entry.array = array;
  entry.seen = seen;
  entry.script = in_script_order(seen, wish.same_layout);
  entry.read_only = wish.read_only;
  entry.used = ++clock_;
  std::swap(entry.made, made);  // the old object dies when everything else is in place: dying may run Python code
  return entry.made.object;
}

}  // namespace fpt
