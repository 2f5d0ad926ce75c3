// SPDX-License-Identifier: MIT
#include "plugin/pickle/pickle_writer.hpp"

#include <unordered_map>

#include "ftr/stored_tensor.hpp"

namespace fpt::direct {
namespace {

constexpr int largest_written_depth = 200;
constexpr std::size_t longest_shared_text = 100;

class PickleWriter {
 public:
  WrittenPickle written(const c10::IValue& value) {
    put("\x80\x02");
    push(value);
    put(".");
    return std::move(written_);
  }

 private:
  void put(std::string_view bytes) { written_.bytes += bytes; }
  void put_number(uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) written_.bytes += static_cast<char>(value >> 8 * i);
  }

  /// Give the latest value a number, by which it is referred to.
  void memoize(const std::string& key) {
    put("r");
    put_number(memo_.size(), 4);
    memo_.emplace(key, memo_.size());
  }
  bool push_known(const std::string& key) {
    const auto known = memo_.find(key);
    if (known == memo_.end()) return false;
    put("j");
    put_number(known->second, 4);
    return true;
  }

  void push(const c10::IValue& value);
  void push_tensor(const at::Tensor& tensor);
  void push_storage(const at::Tensor& tensor, const char* dtype_name);
  void push_integer(int64_t value);
  void push_real(double value);
  void push_text(const std::string& text);
  void push_global(const std::string& module, const std::string& name);
  void push_integers(at::IntArrayRef values);

  WrittenPickle written_;
  std::unordered_map<std::string, uint64_t> memo_;
  std::unordered_map<const void*, std::pair<std::size_t, at::ScalarType>> storages_;
  int depth_ = 0;
};

void PickleWriter::push_integer(int64_t value) {
  const bool is_short = value == static_cast<int32_t>(value);
  put(is_short ? "J" : "\x8a\x08");
  put_number(static_cast<uint64_t>(value), is_short ? 4 : 8);
}

void PickleWriter::push_real(double value) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  put("G");
  put_number(__builtin_bswap64(bits), 8);  // the only number that is big-endian
}

void PickleWriter::push_text(const std::string& text) {
  if (text.size() > UINT32_MAX) fail(FPT_ERR_RESULT_TYPE, "a text of ", text.size(), " bytes is too long");
  const bool is_shared = text.size() <= longest_shared_text;
  const std::string key = is_shared ? "text " + text : std::string();
  if (is_shared && push_known(key)) return;
  put("X");
  put_number(text.size(), 4);
  put(text);
  if (is_shared) memoize(key);
}

void PickleWriter::push_global(const std::string& module, const std::string& name) {
  std::string key = "c";
  key.append(module).append("\n").append(name).append("\n");
  if (push_known(key)) return;
  put(key);
  memoize(key);
}

void PickleWriter::push_integers(at::IntArrayRef values) {
  put("(");
  for (const int64_t value : values) push_integer(value);
  put("t");
}

void PickleWriter::push_storage(const at::Tensor& tensor, const char* dtype_name) {
  const c10::Storage& storage = tensor.storage();
  const auto [known, is_new] =
      storages_.try_emplace(storage.unsafeGetStorageImpl(), written_.storages.size(), tensor.scalar_type());
  if (!is_new && known->second.second != tensor.scalar_type())
    fail(FPT_ERR_RESULT_TYPE, "tensors of type ", known->second.second, " and ", tensor.scalar_type(),
         " share memory, which no file can hold");
  const std::string key = concat("storage ", known->second.first);
  if (push_known(key)) return;
  written_.storages.push_back(storage);
  const bool has_class = ftr::dtype_of_storage(dtype_name).has_value();
  put("(");
  push_text("storage");
  push_global(has_class ? "torch" : "torch.storage", has_class ? dtype_name : "UntypedStorage");
  push_text(std::to_string(known->second.first));
  push_text("cpu");
  push_integer(static_cast<int64_t>(storage.nbytes() / (has_class ? tensor.element_size() : 1)));
  put("tQ");
  memoize(key);
}

void PickleWriter::push_tensor(const at::Tensor& tensor) {
  const char* dtype_name = tensor.defined() ? ftr::stored_name_of(tensor.scalar_type()) : nullptr;
  if (!dtype_name || tensor.layout() != at::kStrided || tensor.is_meta() || tensor.is_nested() ||
      tensor.is_quantized() || !tensor.has_storage())
    fail(FPT_ERR_RESULT_TYPE, "a tensor is not dense, has no numbers, or has a type that cannot be stored");
  const bool has_class = ftr::dtype_of_storage(dtype_name).has_value();
  push_global("torch._utils", has_class ? "_rebuild_tensor_v2" : "_rebuild_tensor_v3");
  put("(");
  push_storage(tensor, dtype_name);
  push_integer(tensor.storage_offset());
  push_integers(tensor.sizes());
  push_integers(tensor.strides());
  put("\x89");  // no gradient, and no hooks
  push_global("collections", "OrderedDict");
  put(")R");
  if (!has_class) push_global("torch", dtype_name);
  if (tensor.is_conj() || tensor.is_neg()) {
    put("}(");
    for (const bool is_conjugate : {true, false}) {
      if (!(is_conjugate ? tensor.is_conj() : tensor.is_neg())) continue;
      push_text(is_conjugate ? "conj" : "neg");
      put("\x88");
    }
    put("u");
  }
  put("tR");
}

void PickleWriter::push(const c10::IValue& value) {
  if (++depth_ > largest_written_depth) fail(FPT_ERR_RESULT_TYPE, "a value is nested too deeply to be stored");
  if (value.isNone()) {
    put("N");
  } else if (value.isTensor()) {
    push_tensor(value.toTensor());
  } else if (value.isBool()) {
    put(value.toBool() ? "\x88" : "\x89");
  } else if (value.isInt()) {
    push_integer(value.toInt());
  } else if (value.isDouble()) {
    push_real(value.toDouble());
  } else if (value.isString()) {
    push_text(value.toStringRef());
  } else if (value.isTuple()) {
    put("(");
    for (const c10::IValue& element : value.toTupleRef().elements()) push(element);
    put("t");
  } else if (value.isList()) {
    put("](");
    for (const c10::IValue& element : value.toListRef()) push(element);
    put("e");
  } else if (value.isGenericDict()) {
    put("}(");
    for (const auto& entry : value.toGenericDict()) {
      push(entry.key());
      push(entry.value());
    }
    put("u");
  } else {
    fail(FPT_ERR_RESULT_TYPE, "a value of type ", value.tagKind(), " cannot be stored");
  }
  --depth_;
}

}  // namespace

WrittenPickle write_plain_pickle(const c10::IValue& value) { return PickleWriter().written(value); }

}  // namespace fpt::direct
