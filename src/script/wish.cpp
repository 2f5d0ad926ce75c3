// SPDX-License-Identifier: MIT
#include "script/wish.hpp"

#include <cstring>

#include "arrays/copy.hpp"
#include "base/error.hpp"

namespace fpt {

void require_host_memory(const Array& array) {
  if (is_device_memory(array.data))
    fail(FPT_ERR_DEVICE, "the array is in device memory, which this version cannot hand to Python: ",
         "update the host copy and pass that, without use_device");
}

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
  Made made = make_array(wish.framework, wish.in_script_order(seen), std::move(storage), wish.read_only && !owns);
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
  const auto element = [](const Array& of, std::size_t i, std::size_t bytes) {
    return static_cast<char*>(of.data) + i * bytes;
  };
  for (std::size_t i = 0; i < count; ++i)
    if (std::memcmp(element(before, i, seen_size), element(seen, i, seen_size), seen_size) == 0)
      std::memcpy(element(result, i, size), element(kept, i, size), size);
  copy(result, array);
}

}  // namespace fpt
