// SPDX-License-Identifier: MIT
/// Plain values of a file, each looked at before it is used. Why::format for another kind than is asked for.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "ftr/refusal.hpp"
#include "ftr/torch.hpp"

namespace ftr {

inline void require_plain(bool is_so, const char* what, const char* wanted) {
  if (!is_so) fail(Why::format, what, " is no ", wanted);
}

inline const std::string& text_in(const c10::IValue& value, const char* what) {
  require_plain(value.isString(), what, "text");
  return value.toStringRef();
}

inline int64_t integer_in(const c10::IValue& value, const char* what) {
  require_plain(value.isInt(), what, "integer");
  return value.toInt();
}

inline double real_in(const c10::IValue& value, const char* what) {
  require_plain(value.isDouble() || value.isInt(), what, "number");
  return value.isDouble() ? value.toDouble() : static_cast<double>(value.toInt());
}

inline bool logical_in(const c10::IValue& value, const char* what) {
  require_plain(value.isBool(), what, "logical");
  return value.toBool();
}

inline const at::Tensor& tensor_in(const c10::IValue& value, const char* what) {
  require_plain(value.isTensor(), what, "tensor");
  return value.toTensor();
}

inline c10::impl::GenericDict dict_in(const c10::IValue& value, const char* what) {
  require_plain(value.isGenericDict(), what, "dict");
  return value.toGenericDict();
}

/// Items of a list or of a tuple.
inline std::vector<c10::IValue> items_in(const c10::IValue& value, const char* what) {
  require_plain(value.isList() || value.isTuple(), what, "list");
  if (value.isTuple()) {
    const auto& elements = value.toTupleRef().elements();
    return std::vector<c10::IValue>(elements.begin(), elements.end());
  }
  const c10::ArrayRef<c10::IValue> list = value.toListRef();
  return list.vec();
}

/// Items of a tuple of at least so many.
inline std::vector<c10::IValue> parts_in(const c10::IValue& value, std::size_t least, const char* what) {
  std::vector<c10::IValue> items = items_in(value, what);
  require_plain(items.size() >= least, what, "tuple of as many parts as it has");
  return items;
}

/// What stands in a dict under a name; Why::format if nothing does.
inline c10::IValue entry_in(const c10::IValue& dict, const char* name) {
  if (!dict.isGenericDict()) fail(Why::format, "what should hold \"", name, "\" is no dict");
  const auto entries = dict.toGenericDict();
  const auto found = entries.find(c10::IValue(name));
  if (found == entries.end()) fail(Why::format, "there is no \"", name, "\"");
  return found->value();
}

}  // namespace ftr
