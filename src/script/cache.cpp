// SPDX-License-Identifier: MIT
#include "script/cache.hpp"

#include <utility>

#include "arrays/arg.hpp"
#include "arrays/copy.hpp"

namespace fpt {

ArrayObject make_in_form(const Array& array, const ScriptForm& form, Array& seen) {
  seen = array;
  std::shared_ptr<void> owner;
  if (form.copies(array)) {
    require_host_memory(array.data);
    owner = packed_copy(array, form.dtype, seen);
  }
  const bool owns = owner != nullptr;
  return make_array(form.framework, form.in_script_order(seen), std::move(owner), form.read_only && !owns);
}

uint64_t SlotCache::head_of(const Array& array, bool read_only) noexcept {
  fpt_arg arg;
  arg.dtype = static_cast<int16_t>(array.dtype);
  arg.rank = static_cast<int8_t>(array.rank);
  arg.access = read_only ? FPT_IN : FPT_OUT;
  arg.status = FPT_OK;
  // no argument has this head: hit() looks at host memory only, since another GPU may have got the address meanwhile
  return array.device.is_host() ? head_of(arg) : ~head_of(arg);
}

uint64_t SlotCache::key_of(const Array& array, uint64_t head) noexcept {
  constexpr uint64_t odd = 0x9E3779B97F4A7C15;  // 2^64 divided by the golden ratio: spreads what differs in few bits
  uint64_t key = (head ^ reinterpret_cast<std::uintptr_t>(array.data)) * odd;
  const auto mix = [&key](int64_t value) { key = (key ^ key >> 32 ^ static_cast<uint64_t>(value)) * odd; };
  mix(array.device.type);
  mix(array.device.index);
  for (int32_t i = 0; i < array.rank; ++i) {
    mix(array.extents[i]);
    mix(array.strides[i]);
  }
  return key ^ key >> 32;
}

SlotCache::Entry* SlotCache::find(const Array& array, uint64_t head, uint64_t key) noexcept {
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) return nullptr;
  Entry& entry = *found->second;
  const bool is_it = entry.head == head && entry.array.data == array.data && entry.array.device == array.device &&
                     has_axes(entry.array, array.rank, array.extents, array.strides);
  return is_it ? &entry : nullptr;
}

bool SlotCache::deserves_place(uint64_t key) {
  if (entries_.size() < few) return true;
  if (remembered_.empty()) remembered_.resize(max_remembered);
  uint64_t& remembered = remembered_[key % max_remembered];
  if (remembered == key) return entries_.size() < max_entries || ++declined_ % 16 == 0;
  // by chance, or two arrays of one place that take turns would make each other forgotten for ever
  chance_ = chance_ * 6364136223846793005 + 1442695040888963407;
  if (remembered == 0 || chance_ >> 63 != 0) remembered = key;
  return false;
}

SlotCache::Entry& SlotCache::add(uint64_t key) {
  const bool has_room = entries_.size() < max_entries;
  Entry& entry = has_room ? entries_.emplace_back() : entries_[oldest_++ % max_entries];
  by_key_.erase(entry.key);
  entry.key = key;
  by_key_[key] = &entry;
  return entry;
}

void SlotCache::forget(const PyObject* object) noexcept {
  for (Entry& entry : entries_)
    if (entry.made.object.get() == object) entry.head = no_head;
}

Ref SlotCache::get(const Array& array, const ScriptForm& form) {
  const uint64_t head = head_of(array, form.read_only), key = key_of(array, head);
  Entry* known = find(array, head, key);
  if (known && is_unchanged(known->made, known->script, form.framework)) {
    learn(*known);
    return known->made.object;
  }
  const uint64_t changes = changes_;
  const Array script = form.in_script_order(array);
  ArrayObject made = make_array(form.framework, script, nullptr, form.read_only);
  made.may_be_referred_to = form.may_be_referred_to;
  const Ref object = made.object;
  if (changes_ != changes) known = find(array, head, key);  // making it ran Python code that came back here
  if (!known && !deserves_place(key)) return object;
  ++changes_;
  Entry& entry = known ? *known : add(key);
  entry.array = array;
  entry.script = script;
  entry.head = head;
  learn(entry);
  std::swap(entry.made, made);  // the old object dies when everything else is in place: dying may run Python code
  return object;
}

}  // namespace fpt
