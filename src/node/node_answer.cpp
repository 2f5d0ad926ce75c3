// SPDX-License-Identifier: MIT
#include "node/node_answer.hpp"

#include <cstring>

#include "arrays/copy.hpp"
#include "base/error.hpp"
#include "base/narrow_floats.hpp"

namespace fpt {
namespace {

/// What a result is; scalars by their place in the variant.
enum class Kind : int64_t { truth, integer, real, complex, text, array, failure };

void send(const Scalar& scalar, SegmentWriter& writer) {
  writer.integer(static_cast<int64_t>(scalar.index()));
  if (const auto* truth = std::get_if<bool>(&scalar)) writer.integer(*truth);
  if (const auto* integer = std::get_if<int64_t>(&scalar)) writer.integer(*integer);
  if (const auto* real = std::get_if<double>(&scalar)) writer.real(*real);
  if (const auto* number = std::get_if<std::complex<double>>(&scalar)) {
    writer.real(number->real());
    writer.real(number->imag());
  }
  if (const auto* text = std::get_if<std::string_view>(&scalar)) writer.text(*text);
}

/// What becomes contiguous: axes in the order that is the reverse of that of the script.
void send(const Array& array, SegmentWriter& writer) {
  writer.integer(static_cast<int64_t>(Kind::array));
  writer.integer(array.dtype);
  writer.integer(array.rank);
  for (int32_t axis = 0; axis < array.rank; ++axis) writer.integer(array.extents[axis]);
  Array packed = array;
  set_contiguous(packed);
  packed.data = writer.block(static_cast<int64_t>(byte_count(array)));
  copy_same_type(array, packed);
}

Array received_array(SegmentReader& reader) {
  Array array;
  array.dtype = static_cast<int32_t>(reader.integer());
  array.rank = static_cast<int32_t>(reader.integer());
  if (array.rank < 0 || array.rank > FPT_MAX_RANK) fail(FPT_ERR_RANK, "a result has rank ", array.rank);
  for (int32_t axis = 0; axis < array.rank; ++axis) array.extents[axis] = reader.integer();
  set_contiguous(array);
  array.data = reader.block(static_cast<int64_t>(byte_count(array)));
  return array;
}

}  // namespace

void send_results(Answer& answer, SegmentWriter& writer) {
  const ResultList list = answer.list();
  writer.integer(list.count);
  writer.integer(list.is_tuple);
  writer.integer(!list.names.empty());
  for (int32_t i = 0; i < list.count; ++i) {
    const char* name = list.names.empty() ? nullptr : list.names[static_cast<std::size_t>(i)];
    writer.integer(name != nullptr);
    writer.text(name ? name : "");
    try {
      const Value value = answer.value(i);
      writer.text(value.type);
      if (value.array())
        send(reversed(answer.on_host(i)), writer);
      else
        send(std::get<Scalar>(value.content), writer);
    } catch (const Error& error) {
      writer.text("");
      writer.integer(static_cast<int64_t>(Kind::failure));
      writer.integer(error.status());
      writer.text(error.text());
    }
  }
}

NodeAnswer::NodeAnswer(SegmentReader& reader) : items_(static_cast<std::size_t>(reader.integer())) {
  is_tuple_ = reader.integer() != 0;
  has_names_ = reader.integer() != 0;
  for (Item& item : items_) {
    item.has_name = reader.integer() != 0;
    item.name = reader.text();
    item.type = reader.text();
    switch (static_cast<Kind>(reader.integer())) {
      case Kind::truth:
        item.scalar = reader.integer() != 0;
        break;
      case Kind::integer:
        item.scalar = reader.integer();
        break;
      case Kind::real:
        item.scalar = reader.real();
        break;
      case Kind::complex: {
        const double real = reader.real();
        item.scalar = std::complex<double>(real, reader.real());
        break;
      }
      case Kind::text:
        item.text = reader.text();
        item.scalar = std::string_view(item.text);
        break;
      case Kind::failure:
        item.status = static_cast<fpt_status>(reader.integer());
        item.text = reader.text();
        break;
      case Kind::array: {
        Array array = received_array(reader);
        item.is_array = true;
        item.memory = allocate(byte_count(array));
        array.data = std::memcpy(item.memory.get(), array.data, byte_count(array));
        item.array = reversed(array);
      }
    }
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
  if (found.is_array) return {found.array, found.type.c_str()};
  return {found.scalar, found.type.c_str()};
}

Array NodeAnswer::on_host(int32_t index) { return item(index).array; }

Array NodeAnswer::convertible(int32_t index) {
  Item& item = items_[static_cast<std::size_t>(index)];
  if (!is_half(item.array.dtype)) return item.array;
  const auto count = static_cast<std::size_t>(element_count(item.array));
  Array wide = reversed(item.array);
  wide.dtype = FPT_FLOAT32;
  set_contiguous(wide);
  if (!item.widened) {
    item.widened = allocate(count * sizeof(float));
    const auto* narrow = static_cast<const uint16_t*>(item.memory.get());
    auto* numbers = static_cast<float*>(item.widened.get());
    for (std::size_t i = 0; i < count; ++i)
      numbers[i] = item.array.dtype == FPT_FLOAT16 ? float_of_half(narrow[i]) : float_of_bfloat16(narrow[i]);
  }
  wide.data = item.widened.get();
  return reversed(wide);
}

TensorPtr NodeAnswer::tensor(int32_t index, bool same_layout, bool /*on_host*/) {
  return Tensor::of_memory(on_host(index), shared_from_this(), same_layout);
}

void NodeAnswer::copy(const Array& source, const Array& target) { fpt::copy(source, target); }

}  // namespace fpt
