// SPDX-License-Identifier: MIT
#include "script/wish.hpp"

#include "arrays/arg.hpp"
#include "arrays/copy.hpp"

namespace fpt {

Made make_wished(const Array& array, const Wish& wish, Array& seen) {
  seen = array;
  std::shared_ptr<void> owner;
  if (wish.copies(array)) {
    require_host_memory(array.data);
    seen.dtype = wish.dtype;
    set_contiguous(seen);
    owner = allocate(static_cast<std::size_t>(element_count(seen)) * dtype_size(seen.dtype));
    seen.data = owner.get();
    copy(array, seen);
  }
  const bool owns = owner != nullptr;
  return make_array(wish.framework, wish.in_script_order(seen), std::move(owner), wish.read_only && !owns);
}

}  // namespace fpt
