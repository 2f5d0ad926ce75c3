// SPDX-License-Identifier: MIT
#include "script/wish.hpp"

#include "arrays/copy.hpp"

namespace fpt {

Made make_wished(const Array& array, const Wish& wish, Array& seen) {
  require_host_memory(array.data);
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

}  // namespace fpt
