// SPDX-License-Identifier: MIT
#include "script/cache.hpp"

#include <cstring>

#include "arrays/copy.hpp"
#include "arrays/device.hpp"
#include "base/error.hpp"

namespace fpt {
namespace {

Array in_script_order(const Array& array, bool same_layout) noexcept { return same_layout ? array : reversed(array); }

void require_host_memory(const Array& array) {
  if (is_device_memory(array.data))
    fail(FPT_ERR_DEVICE, "the array is in device memory, which this version cannot hand to Python: ",
         "update the host copy and pass that, without use_device");
}

}  // namespace

Made make_wished(const Array& array, const Wish& wish, Array& seen) {
  require_host_memory(array);
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

uint64_t SlotCache::head_of(const Array& array, bool read_only) noexcept {
  fpt_arg arg;
  arg.dtype = static_cast<int16_t>(array.dtype);
  arg.rank = static_cast<int8_t>(array.rank);
  arg.access = read_only ? FPT_IN : FPT_OUT;
  arg.status = FPT_OK;
  return head_of(arg);
}

SlotCache::Entry* SlotCache::find(const Array& array, uint64_t head) noexcept {
  const uint32_t tag = tag_of(array.data);
  uint32_t matching = 0;  // without an exit from the loop, so that it compares several at a time
  for (const uint32_t candidate : tags_) matching |= candidate == tag ? 1 : 0;
  if (matching == 0) return nullptr;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (tags_[i] != tag) continue;
    Entry& entry = entries_[i];
    if (entry.head == head && entry.array.data == array.data && has_axes(entry.array, array.rank, array.extents, array.strides)) return &entry;
  }
  return nullptr;
}

SlotCache::Entry& SlotCache::add(const Array& array) {
  if (entries_.size() < max_entries) {
    tags_[entries_.size()] = tag_of(array.data);
    return entries_.emplace_back();
  }
  oldest_ = oldest();
  tags_[oldest_] = tag_of(array.data);
  return entries_[oldest_];
}

SlotCache::Entry* SlotCache::move_oldest(const Array& array, uint64_t head, const Wish& wish) noexcept {
  if (entries_.size() < max_entries || wish.framework != Framework::torch || !TensorImage::may_move()) return nullptr;
  Entry& entry = entries_[oldest()];
  PyObject* tensor = entry.made.object.get();
  if (entry.head != head || !has_axes(entry.array, array.rank, array.extents, array.strides) || element_count(array) == 0)
    return nullptr;
  if (Py_REFCNT(tensor) != 1 || !entry.image.matches(tensor) || !entry.image.is_unshared(tensor)) return nullptr;
  if (!entry.image.move(entry.array.data, array.data)) return nullptr;
  entry.array.data = entry.script.data = array.data;
  return &add(array);
}

Ref SlotCache::get(const Array& array, const Wish& wish) {
  const uint64_t head = head_of(array, wish.read_only);
  Entry* known = find(array, head);
  if (known && is_untouched(*known, wish.framework)) {
    learn(*known);
    return known->made.object;
  }
  const uint64_t changes = changes_;
  require_host_memory(array);
  if (!known)
    if (Entry* moved = move_oldest(array, head, wish)) {
      ++changes_;
      learn(*moved);
      return moved->made.object;
    }
  const Array script = in_script_order(array, wish.same_layout);
  Made made = make_array(wish.framework, script, nullptr, wish.read_only);
  const Ref object = made.object;
  if (changes_ != changes) known = find(array, head);  // making it ran Python code that came back here
  ++changes_;
  Entry& entry = known ? *known : add(array);
  entry.array = array;
  entry.script = script;
  entry.head = head;
  if (wish.framework == Framework::torch) entry.image.take(object.get(), array.rank);
  learn(entry);
  std::swap(entry.made, made);  // the old object dies when everything else is in place: dying may run Python code
  return object;
}

}  // namespace fpt
