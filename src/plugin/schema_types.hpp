// SPDX-License-Identifier: MIT
/// Types that schemas of operators declare.
#pragma once

#include "arrays/dtype.hpp"
#include "plugin/torch.hpp"

namespace fpt::direct {

inline c10::TypePtr without_optional(const c10::TypePtr& type) {
  const auto optional = type->cast<c10::OptionalType>();
  return optional ? optional->getElementType() : type;
}

inline bool is_whole(c10::TypeKind kind) { return kind == c10::TypeKind::IntType || kind == c10::TypeKind::SymIntType; }
using fpt::is_real;  // of an element type: a name in here hides those outside
inline bool is_real(c10::TypeKind kind) {
  return kind == c10::TypeKind::FloatType || kind == c10::TypeKind::SymFloatType;
}

}  // namespace fpt::direct
