// SPDX-License-Identifier: MIT
#include "cache.hpp"

#include <cstring>

#include "copy.hpp"
#include "device.hpp"
#include "error.hpp"

namespace fpt {
namespace {

constexpr std::size_t max_entries = 64;  // enough for a program that calls once per block of columns

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

void write_back(const Array& seen, const Array& array) {
  if (seen.dtype == array.dtype) return copy(seen, array);
  const auto count = static_cast<std::size_t>(element_count(seen));
  const std::size_t size = dtype_size(array.dtype), seen_size = dtype_size(seen.dtype);
  Array before = seen, kept = array, result = array;  // as the conversion made it, as it is, as it shall be
  set_contiguous(kept);
  set_contiguous(result);
  const Storage before_memory = allocate(count * seen_size), kept_memory = allocate(count * size),
                result_memory = allocate(count * size);
  before.data = before_memory.get();
  kept.data = kept_memory.get();
  result.data = result_memory.get();
  copy(array, before);
  if (std::memcmp(before.data, seen.data, count * seen_size) == 0) return;
  copy(array, kept);
  copy(seen, result);
  const auto element = [](const Array& of, std::size_t i, std::size_t bytes) { return static_cast<char*>(of.data) + i * bytes; };
  for (std::size_t i = 0; i < count; ++i)
    if (std::memcmp(element(before, i, seen_size), element(seen, i, seen_size), seen_size) == 0)
      std::memcpy(element(result, i, size), element(kept, i, size), size);
  copy(result, array);
}

PyObject* SlotCache::hit(const fpt_arg& arg, Framework framework, bool thorough) noexcept {
  if (next_ >= entries_.size()) return nullptr;
  Entry& entry = entries_[next_];
  if (entry.array.data != arg.data || entry.array.dtype != arg.dtype || entry.array.rank != arg.rank ||
      entry.read_only != (arg.access == FPT_IN) ||
      !same_axes(arg.rank, arg.u.array.extents, arg.u.array.strides, entry.array) ||
      !is_unchanged(entry.made, entry.script, framework, thorough))
    return nullptr;
  expect_after(entry);
  return entry.made.object.get();
}

void SlotCache::expect_after(const Entry& entry) noexcept {
  const auto index = static_cast<std::size_t>(&entry - entries_.data()) + 1;
  next_ = index < entries_.size() ? index : 0;
}

SlotCache::Entry* SlotCache::find(const Array& array, bool read_only) noexcept {
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (addresses_[i] != array.data) continue;
    Entry& entry = entries_[i];
    if (entry.array.dtype == array.dtype && entry.array.rank == array.rank && entry.read_only == read_only &&
        same_axes(array.rank, array.extents, array.strides, entry.array))
      return &entry;
  }
  return nullptr;
}

SlotCache::Entry& SlotCache::add(const Array& array) {
  if (entries_.size() < max_entries) {
    addresses_.push_back(array.data);
    return entries_.emplace_back();
  }
  oldest_ = oldest_ + 1 < entries_.size() ? oldest_ + 1 : 0;
  addresses_[oldest_] = array.data;
  return entries_[oldest_];
}

Ref SlotCache::get(const Array& array, const Wish& wish) {
  Entry* known = find(array, wish.read_only);
  if (known && is_unchanged(known->made, known->script, wish.framework, wish.thorough)) {
    expect_after(*known);
    return known->made.object;
  }
  const uint64_t changes = changes_;
  Array seen;
  Made made = make_wished(array, wish, seen);
  const Ref object = made.object;
  if (changes_ != changes) known = find(array, wish.read_only);  // making it ran Python code that came back here
  ++changes_;
  Entry& entry = known ? *known : add(array);
  entry.array = array;
  entry.script = in_script_order(seen, wish.same_layout);
  entry.read_only = wish.read_only;
  expect_after(entry);
  std::swap(entry.made, made);  // the old object dies when everything else is in place: dying may run Python code
  return object;
}

}  // namespace fpt
