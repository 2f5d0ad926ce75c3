// SPDX-License-Identifier: MIT
#include "ftr/holes.hpp"

#include "ftr/refusal.hpp"

namespace ftr {

c10::IValue pieces_of(const FilledText& filled) {
  if (!filled.holes.isList()) fail(Why::format, "the holes of its state are no list");
  c10::impl::GenericList pieces(c10::AnyType::get());
  const std::string& text = filled.text;
  std::size_t end = 0;
  for (const c10::IValue& hole : filled.holes.toListRef()) {
    const auto parts = hole.isTuple() ? hole.toTupleRef().elements().vec() : std::vector<c10::IValue>();
    if (parts.size() != 3 || !parts[0].isInt() || !parts[1].isInt() || !parts[2].isTuple())
      fail(Why::format, "a hole of its state has no place");
    const auto begin = static_cast<std::size_t>(parts[0].toInt()), after = static_cast<std::size_t>(parts[1].toInt());
    if (begin < end || after < begin || after > text.size())
      fail(Why::format, "a hole of its state lies outside of it");
    pieces.push_back(text.substr(end, begin - end));
    pieces.push_back(parts[2]);
    end = after;
  }
  pieces.push_back(text.substr(end));
  return pieces;
}

}  // namespace ftr
