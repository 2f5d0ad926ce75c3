// SPDX-License-Identifier: MIT
/// Types that schemas of operators declare.
#pragma once

#include "ftr/torch.hpp"

namespace ftr {

inline c10::TypePtr without_optional(const c10::TypePtr& type) {
  const auto optional = type->cast<c10::OptionalType>();
  return optional ? optional->getElementType() : type;
}

inline bool is_whole(c10::TypeKind kind) { return kind == c10::TypeKind::IntType || kind == c10::TypeKind::SymIntType; }
inline bool is_real(c10::TypeKind kind) {
  return kind == c10::TypeKind::FloatType || kind == c10::TypeKind::SymFloatType;
}

}  // namespace ftr
