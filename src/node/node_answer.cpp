// SPDX-License-Identifier: MIT
#include "node/node_answer.hpp"

#include <cstring>

#include "arrays/copy.hpp"
#include "base/error.hpp"
#include "base/narrow_floats.hpp"

namespace fpt {

void send_results(Answer& answer, SegmentWriter& writer) {
  const ResultList list = answer.list();
  writer.add(list.count, list.is_tuple, !list.names.empty());
  for (int32_t i = 0; i < list.count; ++i) {
    const char* name = list.names.empty() ? nullptr : list.names[static_cast<std::size_t>(i)];
    SentResult sent;
    sent.has_name = name != nullptr;
    sent.name = name ? name : "";
    try {
      const Value value = answer.value(i);
      sent.type = value.type;
      if (const auto* scalar = std::get_if<Scalar>(&value.content))
        sent.content = *scalar;
      else
        sent.content = reversed(answer.on_host(i));
    } catch (const Error& error) {
      sent.status = error.status();
      sent.text = error.text();
    }
    if (const auto* scalar = std::get_if<Scalar>(&sent.content))
      if (const auto* text = std::get_if<std::string_view>(scalar)) sent.text = *text;
    Array* const packed = std::get_if<Array>(&sent.content);
    const Array array = packed ? *packed : Array();
    if (packed) set_contiguous(*packed);
    writer.add(sent);
    writer.object(sent.content);
    if (!packed) continue;
    packed->data = writer.block(static_cast<int64_t>(byte_count(array)));
    copy_same_type(array, *packed);
  }
}

NodeAnswer::NodeAnswer(SegmentReader& reader) : items_(static_cast<std::size_t>(reader.integer())) {
  is_tuple_ = reader.get<bool>();
  has_names_ = reader.get<bool>();
  for (Item& item : items_) {
    static_cast<SentResult&>(item) = reader.get<SentResult>();
    reader.object(item.content);
    if (auto* scalar = std::get_if<Scalar>(&item.content)) {
      if (std::holds_alternative<std::string_view>(*scalar)) *scalar = std::string_view(item.text);
      continue;
    }
    Array& array = std::get<Array>(item.content);
    const std::size_t bytes = byte_count(array);
    item.memory = allocate(bytes);
    array.data = std::memcpy(item.memory.get(), reader.block(static_cast<int64_t>(bytes)), bytes);
    array = reversed(array);
  }
}

ResultList NodeAnswer::list() const {
  ResultList list{static_cast<int32_t>(items_.size()), {}, is_tuple_};
  if (has_names_)
    for (const Item& item : items_) list.names.push_back(item.has_name ? item.name.c_str() : nullptr);
  return list;
}

const NodeAnswer::Item& NodeAnswer::item(int32_t index) const {
  const Item& found = items_[static_cast<std::size_t>(index)];
  if (found.status != FPT_OK) fail(found.status, found.text);
  return found;
}

Value NodeAnswer::value(int32_t index) {
  const Item& found = item(index);
  return {found.content, found.type.c_str()};
}

Array NodeAnswer::on_host(int32_t index) { return array(index); }

Array NodeAnswer::convertible(int32_t index) {
  const Array& narrow = array(index);
  if (!is_half(narrow.dtype)) return narrow;
  const auto count = static_cast<std::size_t>(element_count(narrow));
  Array wide = reversed(narrow);
  wide.dtype = FPT_FLOAT32;
  set_contiguous(wide);
  Storage& memory = items_[static_cast<std::size_t>(index)].widened;
  if (!memory) {
    memory = allocate(count * sizeof(float));
    const auto* given = static_cast<const uint16_t*>(narrow.data);
    auto* numbers = static_cast<float*>(memory.get());
    for (std::size_t i = 0; i < count; ++i)
      numbers[i] = narrow.dtype == FPT_FLOAT16 ? float_of_half(given[i]) : float_of_bfloat16(given[i]);
  }
  wide.data = memory.get();
  return reversed(wide);
}

TensorPtr NodeAnswer::tensor(int32_t index, bool same_layout, bool /*on_host*/) {
  return Tensor::of_memory(array(index), shared_from_this(), same_layout);
}

void NodeAnswer::copy(const Array& source, const Array& target) { fpt::copy(source, target); }

}  // namespace fpt
