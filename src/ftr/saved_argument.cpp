// SPDX-License-Identifier: MIT
#include "ftr/saved_argument.hpp"

#include <ATen/ScalarOps.h>

#include "ftr/plain_values.hpp"
#include "ftr/schema_types.hpp"
#include "ftr/stored_tensor.hpp"

namespace ftr {
namespace {

// so that no product with the size of a batch overflows
constexpr int64_t largest_size = int64_t{1} << 31;

Size size_of(const c10::IValue& factor, const c10::IValue& offset) {
  const Size size{integer_in(factor, "a size"), integer_in(offset, "a size")};
  const auto is_sensible = [](int64_t value) { return value > -largest_size && value < largest_size; };
  // an offset stands alone where there is no batch
  const bool is_alone = size.factor == 0 && size.offset >= 0;
  if (!is_sensible(size.factor) || !(is_alone || is_sensible(size.offset))) fail(Why::format, "a size is out of range");
  return size;
}

int32_t slot_in(const c10::IValue& value) {
  const int64_t slot = integer_in(value, "a slot");
  if (slot < -1 || slot > std::numeric_limits<int32_t>::max()) fail(Why::format, "there is no slot ", slot);
  return static_cast<int32_t>(slot);
}

[[noreturn]] void refuse(const c10::Argument& declared) {
  fail(Why::format, "its argument ", declared.name(), " is not of type ", declared.type()->str());
}

template <class Item, class Read>
c10::IValue list_of(const std::vector<c10::IValue>& items, const Read& read) {
  c10::List<Item> list;
  list.reserve(items.size());
  for (const c10::IValue& each : items) list.push_back(read(each, "an item of a list"));
  return list;
}

c10::IValue value_of(const c10::IValue& value, const c10::TypePtr& type, const c10::Argument& declared);

c10::IValue list_in(const c10::IValue& value, const c10::TypePtr& item, const c10::Argument& declared) {
  const std::vector<c10::IValue> items = items_in(value, "a list");
  const c10::TypeKind kind = item->kind();
  if (is_whole(kind)) return list_of<int64_t>(items, integer_in);
  if (is_real(kind)) return list_of<double>(items, real_in);
  if (kind == c10::TypeKind::BoolType) return list_of<bool>(items, logical_in);
  if (kind == c10::TypeKind::StringType) return list_of<std::string>(items, text_in);
  if (kind == c10::TypeKind::NumberType) {
    c10::impl::GenericList list(c10::NumberType::get());
    for (const c10::IValue& each : items) list.push_back(value_of(each, item, declared));
    return list;
  }
  if (kind == c10::TypeKind::TensorType && items.empty()) return c10::List<at::Tensor>();
  if (kind == c10::TypeKind::OptionalType) {
    c10::List<std::optional<at::Tensor>> list;
    for (const c10::IValue& each : items) {
      if (!each.isNone()) refuse(declared);
      list.push_back(std::optional<at::Tensor>());
    }
    return list;
  }
  refuse(declared);
}

/// A plain value as an operator wants it.
c10::IValue value_of(const c10::IValue& value, const c10::TypePtr& type, const c10::Argument& declared) {
  const bool is_number = value.isInt() || value.isDouble() || value.isBool();
  if (value.isNone() && type->kind() == c10::TypeKind::OptionalType) return {};
  if (value.isNone() && type->kind() == c10::TypeKind::TensorType) return at::Tensor();  // an undefined one
  const c10::TypePtr wanted = without_optional(type);
  const c10::TypeKind kind = wanted->kind();
  if (kind == c10::TypeKind::TensorType && is_number) return at::native::wrapped_scalar_tensor(value.toScalar());
  if (kind == c10::TypeKind::NumberType && is_number) return value;
  if (kind == c10::TypeKind::BoolType && value.isBool()) return value;
  if (is_whole(kind) && value.isInt()) return value;
  if (is_real(kind) && (value.isDouble() || value.isInt())) return real_in(value, "a number");
  if (kind == c10::TypeKind::StringType && value.isString()) return value;
  if (const auto list = wanted->cast<c10::ListType>()) {
    if (value.isList() || value.isTuple()) return list_in(value, list->getElementType(), declared);
    // an operator may take one number in place of a list of equal ones
    if (declared.N() && value.isInt()) return c10::List<int64_t>(std::vector<int64_t>(*declared.N(), value.toInt()));
  }
  refuse(declared);
}

int64_t layout_in(const std::string& name) {
  if (name == "strided") return static_cast<int64_t>(at::kStrided);
  fail(Why::format, "there is no layout ", name.substr(0, 100));
}

int64_t memory_format_in(const std::string& name) {
  if (name == "preserve_format") return static_cast<int64_t>(at::MemoryFormat::Preserve);
  if (name == "contiguous_format") return static_cast<int64_t>(at::MemoryFormat::Contiguous);
  if (name == "channels_last") return static_cast<int64_t>(at::MemoryFormat::ChannelsLast);
  if (name == "channels_last_3d") return static_cast<int64_t>(at::MemoryFormat::ChannelsLast3d);
  fail(Why::format, "there is no memory format ", name.substr(0, 100));
}

/// Of a value that has a name in the file: element types, devices and the like.
c10::IValue named_value(const std::string& kind, const std::string& name, const SavedContext& context) {
  if (kind == "dtype") return static_cast<int64_t>(read_dtype(name));
  if (kind == "layout") return layout_in(name);
  if (kind == "memory_format") return memory_format_in(name);
  try {
    (void)at::Device(name);
    return context.device;
  } catch (const c10::Error&) {
    fail(Why::format, "there is no device ", name.substr(0, 100));
  }
}

bool takes(const c10::TypePtr& type, const std::string& kind) {
  const c10::TypeKind wanted = without_optional(type)->kind();
  if (kind == "device") return wanted == c10::TypeKind::DeviceObjType;
  return is_whole(wanted) || wanted == c10::TypeKind::LayoutType || wanted == c10::TypeKind::MemoryFormatType ||
         wanted == c10::TypeKind::ScalarTypeType;
}

void read_slots(const c10::IValue& described, const c10::Argument& declared, Argument& made) {
  const auto list = without_optional(declared.type())->cast<c10::ListType>();
  if (!list) refuse(declared);
  const c10::TypePtr item = list->getElementType();
  made.may_be_none = item->kind() == c10::TypeKind::OptionalType;
  if (without_optional(item)->kind() != c10::TypeKind::TensorType) refuse(declared);
  for (const c10::IValue& each : items_in(described, "a list of slots")) made.items.push_back(slot_in(each));
}

void read_formulas(const std::string& kind, const c10::IValue& described, const c10::Argument& declared,
                   Argument& made) {
  const c10::TypePtr type = without_optional(declared.type());
  if (kind == "number") {
    made.is_wrapped = type->kind() == c10::TypeKind::TensorType;
    if (!made.is_wrapped && !is_real(type->kind()) && type->kind() != c10::TypeKind::NumberType) refuse(declared);
    made.formulas.push_back(read_formula(described));
    return;
  }
  const auto list = type->cast<c10::ListType>();
  if (!list || list->getElementType()->kind() != c10::TypeKind::NumberType) refuse(declared);
  for (const c10::IValue& each : items_in(described, "a list of formulas")) made.formulas.push_back(read_formula(each));
}

void read_size(const std::string& kind, const std::vector<c10::IValue>& parts, const c10::Argument& declared,
               Argument& made) {
  const c10::TypePtr type = without_optional(declared.type());
  if (kind == "sizes") {
    const auto list = type->cast<c10::ListType>();
    if (!list || !is_whole(list->getElementType()->kind())) refuse(declared);
    made.sizes = read_sizes(parts[1]);
    return;
  }
  made.is_wrapped = type->kind() == c10::TypeKind::TensorType;
  const bool is_number = made.is_wrapped || type->kind() == c10::TypeKind::NumberType;
  if (!is_number && !(kind == "size" ? is_whole(type->kind()) : is_real(type->kind()))) refuse(declared);
  if (kind == "fraction") {
    made.value = real_in(parts[1], "a fraction");
    return;
  }
  if (parts.size() != 3) fail(Why::format, "a size is no pair");
  made.sizes = {size_of(parts[1], parts[2])};
}

}  // namespace

std::vector<Size> read_sizes(const c10::IValue& described) {
  std::vector<Size> made;
  for (const c10::IValue& each : items_in(described, "a list of sizes")) {
    const std::vector<c10::IValue> pair = parts_in(each, 2, "a size");
    made.push_back(size_of(pair[0], pair[1]));
  }
  return made;
}

Formula read_formula(const c10::IValue& described) {
  Formula made;
  std::size_t height = 0;
  for (const c10::IValue& step : items_in(described, "a formula")) {
    const std::vector<c10::IValue> pair = parts_in(step, 2, "a step of a formula");
    const int64_t number = integer_in(pair[0], "a step of a formula");
    if (number < 0 || number > static_cast<int64_t>(Formula::Code::negate))
      fail(Why::format, "a formula has a step of kind ", number);
    const auto code = static_cast<Formula::Code>(number);
    const bool pushes = code <= Formula::Code::constant, is_unary = code == Formula::Code::negate;
    if (!pushes && height < (is_unary ? 1U : 2U)) fail(Why::format, "a formula computes with nothing");
    if (pushes) ++height;
    if (!pushes && !is_unary) --height;
    if (code == Formula::Code::constant)
      made.steps.push_back({code, -1, real_in(pair[1], "a constant")});
    else
      made.steps.push_back({code, pushes ? slot_in(pair[1]) : 0, 0});
  }
  if (height != 1) fail(Why::format, "a formula gives ", height, " numbers");
  return made;
}

Argument read_argument(const c10::IValue& described, const c10::Argument& declared, const SavedContext& context) {
  const std::vector<c10::IValue> parts = parts_in(described, 2, "an argument");
  const std::string& kind = text_in(parts[0], "the kind of an argument");
  Argument made;
  if (kind == "slot" || kind == "last") {
    if (without_optional(declared.type())->kind() != c10::TypeKind::TensorType) refuse(declared);
    made.kind = kind == "slot" ? Argument::Kind::slot : Argument::Kind::last;
    made.index = slot_in(parts[1]);
  } else if (kind == "list") {
    made.kind = Argument::Kind::list;
    read_slots(parts[1], declared, made);
  } else if (kind == "number" || kind == "numbers") {
    made.kind = kind == "number" ? Argument::Kind::number : Argument::Kind::numbers;
    read_formulas(kind, parts[1], declared, made);
  } else if (kind == "size" || kind == "real" || kind == "fraction" || kind == "sizes") {
    made.kind = kind == "size"       ? Argument::Kind::size
                : kind == "real"     ? Argument::Kind::real
                : kind == "fraction" ? Argument::Kind::fraction
                                     : Argument::Kind::sizes;
    read_size(kind, parts, declared, made);
  } else if (kind == "dtype" || kind == "layout" || kind == "memory_format" || kind == "device") {
    if (!takes(declared.type(), kind)) refuse(declared);
    made.value = named_value(kind, text_in(parts[1], "a name"), context);
  } else if (kind == "complex") {
    const c10::complex<double> number(real_in(parts[1], "a number"),
                                      real_in(parts_in(described, 3, "a number")[2], "a"));
    const c10::TypeKind wanted = without_optional(declared.type())->kind();
    if (wanted == c10::TypeKind::TensorType)
      made.value = at::native::wrapped_scalar_tensor(number);
    else if (wanted == c10::TypeKind::NumberType)
      made.value = number;
    else
      refuse(declared);
  } else if (kind == "value") {
    made.value = value_of(parts[1], declared.type(), declared);
  } else {
    fail(Why::format, "there is no kind of argument ", kind.substr(0, 100));
  }
  return made;
}

}  // namespace ftr
