// SPDX-License-Identifier: MIT
#include "arrays/dtype.hpp"

namespace fpt {

bool is_widening(int32_t from, int32_t to) noexcept {
  if (from == to) return true;
  if (is_logical(from) || is_logical(to)) return is_logical(from) && is_logical(to);
  const DtypeFacts &source = dtype_facts(from), &target = dtype_facts(to);
  if (source.exact_bits == 0 || target.exact_bits == 0) return false;
  if (to == FPT_UINT8) return false;  // no sign
  // bfloat16 has the exponent of float32, which float16 has not
  if (from == FPT_BFLOAT16 && to == FPT_FLOAT16) return false;
  return source.group <= target.group && source.exact_bits <= target.exact_bits;
}

bool is_castable(int32_t from, int32_t to) noexcept {
  if (is_widening(from, to)) return true;
  if (is_logical(from) || is_logical(to)) return false;
  const DtypeGroup source = dtype_facts(from).group, target = dtype_facts(to).group;
  return source != DtypeGroup::none && target != DtypeGroup::none && source <= target;
}

}  // namespace fpt
