// SPDX-License-Identifier: MIT
#include "ftr/plain_pickle.hpp"

#include <unordered_map>

#include "ftr/pickle_opcode.hpp"
#include "ftr/stored_tensor.hpp"

namespace ftr {
namespace {

using c10::IValue;

constexpr uint64_t most_values = 5'000'000;        // that are made or noted; torch takes up to 200 bytes for one
constexpr uint64_t most_occurrences = 20'000'000;  // of them in the result, where each reference to one counts
constexpr uint64_t occurrences_of_a_byte = 8;      // so that a small file takes little
constexpr uint32_t largest_depth = 200;

[[noreturn]] void refuse_value(const std::string& reason) { fail(Why::format, reason); }

/// A name of Python, or a storage with the element type that its name says; none for one of bytes.
struct Symbol : torch::CustomClassHolder {
  std::string name;
  c10::Storage storage;
  std::optional<at::ScalarType> dtype;
};

/// How much a container holds. It can be filled while it is open, which is until somebody refers to it: so nothing can
/// contain itself, and the numbers are final when they are used.
struct Extent {
  uint64_t occurrences = 1;
  uint32_t depth = 1;
  bool is_open = false;
  bool has_symbol = false;  ///< only arguments of calls do
};

struct Item {
  IValue value;
  std::shared_ptr<Extent> extent;  ///< none for what is no container
};

bool is_symbol(const IValue& value) { return value.isCapsule(); }

const Symbol& symbol_of(const IValue& value, const char* what) {
  if (!is_symbol(value)) refuse_value(concat(what, " has another type than it must have"));
  return static_cast<const Symbol&>(*static_cast<const Symbol*>(value.toCapsule().get()));
}

at::ArrayRef<IValue> elements_of(const IValue& value, const char* what) {
  if (!value.isTuple()) refuse_value(concat(what, " is no tuple"));
  const auto& elements = value.toTupleRef().elements();
  return at::ArrayRef<IValue>(elements.begin(), elements.size());  // braces would make a list of two values
}

std::vector<int64_t> integers_of(const IValue& value) {
  std::vector<int64_t> numbers;
  for (const IValue& number : elements_of(value, "the shape of a tensor")) {
    if (!number.isInt()) refuse_value("a size or stride of a tensor is no integer");
    numbers.push_back(number.toInt());
  }
  return numbers;
}

class PickleReader {
 public:
  PickleReader(std::string_view bytes, const StorageOf& storage_of) : bytes_(bytes), storage_of_(storage_of) {}

  IValue value() {
    if (byte() != static_cast<unsigned char>(Opcode::PROTO) || byte() != 2)
      refuse_value("it does not begin as a pickle of torch.save");
    while (true) {
      const unsigned char opcode = byte();
      if (opcode == static_cast<unsigned char>(Opcode::STOP)) break;
      step(opcode);
    }
    Item result = pop();
    if (!stack_.empty() || !marks_.empty() || at_ != bytes_.size())
      refuse_value("something is left behind the last value");
    require_plain(result);
    return std::move(result.value);
  }

 private:
  std::string_view next(std::size_t count) {
    if (bytes_.size() - at_ < count) refuse_value("it ends early");
    at_ += count;
    return bytes_.substr(at_ - count, count);
  }
  unsigned char byte() { return static_cast<unsigned char>(next(1)[0]); }
  uint64_t number(std::size_t count) {
    const std::string_view bytes = next(count);
    uint64_t value = 0;
    for (std::size_t i = count; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
    return value;
  }
  std::string_view line() {
    const std::size_t end = bytes_.find('\n', at_);
    if (end == std::string_view::npos) refuse_value("it ends early");
    const std::string_view text = next(end - at_);
    (void)byte();
    return text;
  }
  double real() {
    uint64_t bits = 0;
    for (const char each : next(8)) bits = bits << 8 | static_cast<unsigned char>(each);
    double value = 0;
    std::memcpy(&value, &bits, sizeof value);
    return value;
  }
  int64_t long_integer() {
    const std::size_t count = byte();
    if (count > 8) refuse_value("an integer has more than 64 bits");
    if (count == 0) return 0;
    const int unused = 64 - 8 * static_cast<int>(count);
    return static_cast<int64_t>(number(count) << unused) >> unused;
  }

  void push(IValue value, std::shared_ptr<Extent> extent = nullptr) {
    if (++made_ > most_values) refuse_value("it has too many values");
    stack_.push_back({std::move(value), std::move(extent)});
  }
  void push_open(IValue value) {
    auto extent = std::make_shared<Extent>();
    extent->is_open = true;
    push(std::move(value), std::move(extent));
  }
  std::size_t floor() const noexcept { return marks_.empty() ? 0 : marks_.back(); }
  Item pop() {
    if (stack_.size() <= floor()) refuse_value("a value is missing");
    Item item = std::move(stack_.back());
    stack_.pop_back();
    if (item.extent) item.extent->is_open = false;
    return item;
  }
  /// The last `count` ones, in their order.
  std::vector<Item> pop_many(std::size_t count) {
    std::vector<Item> items(count);
    for (std::size_t i = count; i-- > 0;) items[i] = pop();
    return items;
  }
  std::vector<Item> pop_to_mark() {
    if (marks_.empty()) refuse_value("a mark is missing");
    std::vector<Item> items = pop_many(stack_.size() - marks_.back());
    marks_.pop_back();
    return items;
  }
  static void require_plain(const Item& item) {
    if (is_symbol(item.value) || (item.extent && item.extent->has_symbol))
      refuse_value("a name of Python or a storage stands where a value must be");
  }

  void hold(Extent& extent, const Item& item) const {
    extent.occurrences += item.extent ? item.extent->occurrences : 1;
    extent.depth = std::max(extent.depth, item.extent ? item.extent->depth + 1 : 1);
    extent.has_symbol = extent.has_symbol || is_symbol(item.value) || (item.extent && item.extent->has_symbol);
    if (extent.occurrences > std::min(most_occurrences, occurrences_of_a_byte * bytes_.size()))
      refuse_value("it has too many values");
    if (extent.depth > largest_depth) refuse_value("it is nested too deeply");
  }
  Item& top_to_fill() {
    if (stack_.size() <= floor() || !stack_.back().extent || !stack_.back().extent->is_open)
      refuse_value("something is put into what is no list or dict, or is complete");
    return stack_.back();
  }
  void append(std::vector<Item> items) {
    Item& list = top_to_fill();
    if (!list.value.isList()) refuse_value("something is appended to a dict");
    c10::List<IValue> elements = list.value.toList();
    for (Item& item : items) {
      require_plain(item);
      hold(*list.extent, item);
      elements.push_back(std::move(item.value));
    }
  }
  void set(std::vector<Item> items) {
    Item& dict = top_to_fill();
    if (!dict.value.isGenericDict()) refuse_value("a key is put into a list");
    if (items.size() % 2 != 0) refuse_value("a key has no value");
    auto entries = dict.value.toGenericDict();
    for (std::size_t i = 0; i < items.size(); i += 2) {
      const IValue& key = items[i].value;
      require_plain(items[i + 1]);
      if (!key.isString() && !key.isInt()) refuse_value("a key is neither a text nor an integer");
      hold(*dict.extent, items[i]);
      hold(*dict.extent, items[i + 1]);
      if (!entries.insert(key, std::move(items[i + 1].value)).second) refuse_value("a key stands twice in a dict");
    }
  }
  void push_tuple(std::vector<Item> items) {
    auto extent = std::make_shared<Extent>();
    std::vector<IValue> elements;
    for (Item& item : items) {
      hold(*extent, item);
      elements.push_back(std::move(item.value));
    }
    push(c10::ivalue::Tuple::create(std::move(elements)), std::move(extent));
  }
  void push_symbol(std::string name, c10::Storage storage = {}, std::optional<at::ScalarType> dtype = {}) {
    auto symbol = c10::make_intrusive<Symbol>();
    symbol->name = std::move(name);
    symbol->storage = std::move(storage);
    symbol->dtype = dtype;
    push(IValue::make_capsule(std::move(symbol)));
  }

  void put(uint64_t place) {
    if (stack_.size() <= floor()) refuse_value("a value is missing");
    if (++made_ > most_values) refuse_value("it has too many values");
    memo_[place] = stack_.back();
  }
  void get(uint64_t place) {
    const auto found = memo_.find(place);
    if (found == memo_.end()) refuse_value("it refers to a value that is not there");
    if (found->second.extent) found->second.extent->is_open = false;
    push(found->second.value, found->second.extent);
  }

  void step(unsigned char opcode);
  void push_global();
  void push_storage();
  void reduce();
  at::Tensor tensor(at::ArrayRef<IValue> arguments, bool has_dtype) const;

  std::string_view bytes_;
  const StorageOf& storage_of_;
  std::size_t at_ = 0;
  std::vector<Item> stack_;
  std::vector<std::size_t> marks_;
  std::unordered_map<uint64_t, Item> memo_;
  uint64_t made_ = 0;
};

void PickleReader::step(unsigned char opcode) {
  using enum Opcode;
  switch (static_cast<Opcode>(opcode)) {
    case MARK:
      if (marks_.size() >= most_values) refuse_value("it has too many values");
      return marks_.push_back(stack_.size());
    case NONE:
      return push(IValue());
    case NEWTRUE:
    case NEWFALSE:
      return push(opcode == static_cast<unsigned char>(NEWTRUE));
    case BININT:
      return push(int64_t{static_cast<int32_t>(number(4))});
    case BININT1:
      return push(static_cast<int64_t>(number(1)));
    case BININT2:
      return push(static_cast<int64_t>(number(2)));
    case LONG1:
      return push(long_integer());
    case BINFLOAT:
      return push(real());
    case BINUNICODE:
      return push(std::string(next(number(4))));
    case EMPTY_LIST:
      return push_open(c10::impl::GenericList(c10::AnyType::get()));
    case APPEND:
      return append(pop_many(1));
    case APPENDS:
      return append(pop_to_mark());
    case EMPTY_DICT:
      return push_open(c10::impl::GenericDict(c10::AnyType::get(), c10::AnyType::get()));
    case SETITEM:
      return set(pop_many(2));
    case SETITEMS:
      return set(pop_to_mark());
    case EMPTY_TUPLE:
      return push_tuple({});
    case TUPLE1:
    case TUPLE2:
    case TUPLE3:
      return push_tuple(pop_many(std::size_t{1} + opcode - static_cast<unsigned char>(TUPLE1)));
    case TUPLE:
      return push_tuple(pop_to_mark());
    case BINPUT:
    case LONG_BINPUT:
      return put(number(opcode == static_cast<unsigned char>(BINPUT) ? 1 : 4));
    case BINGET:
    case LONG_BINGET:
      return get(number(opcode == static_cast<unsigned char>(BINGET) ? 1 : 4));
    case GLOBAL:
      return push_global();
    case BINPERSID:
      return push_storage();
    case REDUCE:
      return reduce();
    default:
      refuse_value(concat("it has the opcode ", static_cast<int>(opcode), ", which no plain value needs"));
  }
}

void PickleReader::push_global() {
  std::string name(line());
  name += '.';
  name += line();
  const std::string_view last = std::string_view(name).substr(name.find('.') + 1);
  const bool is_of_torch = name.rfind("torch.", 0) == 0;
  const bool is_known =
      name == "collections.OrderedDict" || name == "torch._utils._rebuild_tensor_v2" ||
      name == "torch._utils._rebuild_tensor_v3" || name == "torch.storage.UntypedStorage" ||
      (is_of_torch && (last == "UntypedStorage" || dtype_of_storage(last) || dtype_without_storage(last)));
  if (!is_known) refuse_value(concat("it has the name ", name.substr(0, 200), ", which no plain value needs"));
  push_symbol(std::move(name));
}

/// ("storage", class, name in the archive, device, number of elements); where it was is of no interest.
void PickleReader::push_storage() {
  const Item item = pop();
  const auto parts = elements_of(item.value, "the description of a storage");
  if (parts.size() != 5 || !parts[0].isString() || parts[0].toStringRef() != "storage" || !parts[2].isString() ||
      !parts[3].isString() || !parts[4].isInt())
    refuse_value("a storage is described by something else than class, name, device and number of elements");
  const std::string& type = symbol_of(parts[1], "the class of a storage").name;
  const auto dtype = dtype_of_storage(std::string_view(type).substr(type.find('.') + 1));
  const bool has_bytes = type == "torch.UntypedStorage" || type == "torch.storage.UntypedStorage";
  if (!dtype && !has_bytes) refuse_value(type + " is no class of storages");
  c10::Storage storage = storage_of_(parts[2].toStringRef());
  const int64_t count = parts[4].toInt();
  const auto there = static_cast<int64_t>(storage.nbytes() / (dtype ? c10::elementSize(*dtype) : 1));
  if (count < 0 || count > there)
    refuse_value(concat("a storage is said to have ", count, " elements, and there are ", there, " in the file"));
  push_symbol({}, std::move(storage), dtype);
}

/// Arguments: storage, offset, sizes, strides, whether it requires a gradient, hooks, [the element type], [metadata].
at::Tensor PickleReader::tensor(at::ArrayRef<IValue> arguments, bool has_dtype) const {
  const std::size_t count = has_dtype ? 7 : 6;
  if (arguments.size() != count && arguments.size() != count + 1)
    refuse_value(concat("a tensor is described by ", arguments.size(), " values"));
  const Symbol& storage = symbol_of(arguments[0], "the storage of a tensor");
  if (!storage.storage) refuse_value("a tensor has no storage");
  std::optional<at::ScalarType> dtype = storage.dtype;
  if (has_dtype) {
    const std::string& name = symbol_of(arguments[6], "the element type of a tensor").name;
    dtype = dtype_without_storage(std::string_view(name).substr(name.find('.') + 1));
  }
  if (!dtype) refuse_value("a tensor has an unknown element type");
  if (!arguments[1].isInt() || !arguments[4].isBool() || !arguments[5].isGenericDict())
    refuse_value("a tensor is described by values of other types than it must be");
  if (arguments[5].toGenericDict().size() > 0) refuse_value("a tensor has hooks");
  at::Tensor result = tensor_in_storage(storage.storage, *dtype, arguments[1].toInt(), integers_of(arguments[2]),
                                        integers_of(arguments[3]));
  if (arguments.size() == count) return result;
  if (!arguments[count].isGenericDict()) refuse_value("the metadata of a tensor are no dict");
  for (const auto& entry : arguments[count].toGenericDict()) {
    const bool is_conjugate = entry.key().isString() && entry.key().toStringRef() == "conj";
    if ((!is_conjugate && !(entry.key().isString() && entry.key().toStringRef() == "neg")) || !entry.value().isBool() ||
        !(result.is_complex() || !is_conjugate))
      refuse_value("the metadata of a tensor are not known");
    if (is_conjugate)
      result._set_conj(entry.value().toBool());
    else
      result._set_neg(entry.value().toBool());
  }
  return result;
}

void PickleReader::reduce() {
  const Item arguments = pop(), function = pop();
  const std::string& name = symbol_of(function.value, "what is called").name;
  const auto values = elements_of(arguments.value, "what a call is given");
  if (name == "collections.OrderedDict" && values.empty())
    return push_open(c10::impl::GenericDict(c10::AnyType::get(), c10::AnyType::get()));
  const bool has_dtype = name == "torch._utils._rebuild_tensor_v3";
  if (!has_dtype && name != "torch._utils._rebuild_tensor_v2") refuse_value(concat("it calls \"", name, "\""));
  push(tensor(values, has_dtype));
}

}  // namespace

IValue read_plain_pickle(std::string_view bytes, const StorageOf& storage_of) {
  return PickleReader(bytes, storage_of).value();
}

}  // namespace ftr
