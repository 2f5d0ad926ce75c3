// SPDX-License-Identifier: MIT
#include "cache.hpp"

#include <algorithm>
#include <cstring>

#include "copy.hpp"
#include "device.hpp"
#include "error.hpp"

namespace fpt {
namespace {

// Enough for a program that calls once per block of columns; converted copies own memory, so there are fewer.
constexpr std::size_t max_entries = 64;
constexpr std::size_t max_copies = 4;

bool same(const Array& a, const Array& b) noexcept {
  return a.data == b.data && a.dtype == b.dtype && a.rank == b.rank &&
         std::memcmp(a.extents, b.extents, sizeof(int64_t) * static_cast<std::size_t>(a.rank)) == 0 &&
         std::memcmp(a.strides, b.strides, sizeof(int64_t) * static_cast<std::size_t>(a.rank)) == 0;
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

SlotCache::Entry* SlotCache::find(const Array& array, const Wish& wish) noexcept {
  const std::size_t count = entries_.size();
  for (std::size_t step = 0; step < count; ++step) {
    const std::size_t index = (next_ + step) % count;
    Entry& entry = entries_[index];
    if (entry.array.data == array.data && same(entry.array, array) && entry.read_only == wish.read_only &&
        entry.seen.dtype == wish.dtype) {
      next_ = (index + 1) % count;
      return &entry;
    }
  }
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
  if (Entry* entry = find(array, wish)) {
    const bool copies = wish.copies(array);
    const Array script = in_script_order(entry->seen, wish.same_layout);
    if (is_unchanged(entry->made, script, wish.framework, wish.thorough)) {
      if (copies) copy(array, entry->seen);
      entry->used = ++clock_;
      seen = entry->seen;
      return entry->made.object;
    }
  }
  Made made = make_wished(array, wish, seen);
  Entry* old = find(array, wish);
  Entry& entry = old ? *old : entries_[place(wish, array)];
  entry.array = array;
  entry.seen = seen;
  entry.read_only = wish.read_only;
  entry.used = ++clock_;
  std::swap(entry.made, made);  // the old object dies when everything else is in place: dying may run Python code
  return entry.made.object;
}

}  // namespace fpt
