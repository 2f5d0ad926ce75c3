// SPDX-License-Identifier: MIT
#include "plugin/answer.hpp"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <optional>

#include "base/per_thread.hpp"
#include "direct/direct_value.hpp"

namespace fpt::direct {
namespace {

constexpr const char* allowed = "tensors, numbers, strings, or a tuple, list, dict or named tuple of those";

std::string label_of(const char* name, std::size_t number, bool single, const std::string& what) {
  if (name) return concat("result \"", name, "\" of ", what);
  return single ? "the result of " + what : concat("result ", number, " of ", what);
}

template <class T>
void set_number(fpt_direct_value& value, int32_t dtype, T number) {
  value.kind = FPT_DIRECT_NUMBER;
  value.dtype = dtype;
  std::memcpy(value.number, &number, sizeof number);
}

const char* python_name_of(at::Layout layout) noexcept {
  switch (layout) {
    case at::kSparse:
      return "torch.sparse_coo";
    case at::kSparseCsr:
      return "torch.sparse_csr";
    case at::kSparseCsc:
      return "torch.sparse_csc";
    case at::kSparseBsr:
      return "torch.sparse_bsr";
    case at::kSparseBsc:
      return "torch.sparse_bsc";
    case at::kMkldnn:
      return "torch._mkldnn";
    default:
      return "that is not strided";
  }
}

/// Numbers or logicals of a container inside another one.
struct Numbers {
  std::vector<c10::Scalar> leaves;

  /// Its extents; nothing for what has other leaves, or lists of several lengths.
  std::optional<std::vector<int64_t>> add(const c10::IValue& value) {
    if (value.isBool() || value.isScalar()) {
      leaves.push_back(value.isBool() ? c10::Scalar(value.toBool()) : value.toScalar());
      return std::vector<int64_t>();
    }
    if (!value.isList() && !(value.isTuple() && !value.toTupleRef().type()->schema())) return std::nullopt;
    std::optional<std::vector<int64_t>> below;
    const c10::ivalue::TupleElements* tuple = value.isTuple() ? &value.toTupleRef().elements() : nullptr;
    const c10::List<c10::IValue> list = tuple ? c10::List<c10::IValue>(c10::AnyType::get()) : value.toList();
    const std::size_t count = tuple ? tuple->size() : list.size();
    for (std::size_t i = 0; i < count; ++i) {
      auto extents = add(tuple ? (*tuple)[i] : c10::IValue(list.get(i)));
      if (!extents || (below && *below != *extents)) return std::nullopt;
      below = std::move(extents);
    }
    std::vector<int64_t> extents{static_cast<int64_t>(count)};
    if (below) extents.insert(extents.end(), below->begin(), below->end());
    return extents;
  }
};

struct Spare {
  std::unique_ptr<Answer> answer;
};

}  // namespace

bool is_plain(const at::Tensor& tensor) noexcept {
  return tensor.defined() && tensor.layout() == at::kStrided && !tensor.is_quantized() && !tensor.is_nested() &&
         !tensor.is_meta() && tensor.dim() <= FPT_MAX_RANK && dtype_of(tensor.scalar_type()) != FPT_NONE &&
         !tensor.is_conj() && !tensor.is_neg();
}

at::Tensor plain(at::Tensor tensor, const std::string& label) {
  std::string advice;
  if (tensor.is_nested())
    advice = "a nested tensor; return torch.nested.to_padded_tensor(...)";
  else if (tensor.layout() != at::kStrided)
    advice = concat("a tensor of layout ", python_name_of(tensor.layout()), "; return x.to_dense()");
  else if (tensor.is_quantized())
    advice = "a quantized tensor; return x.dequantize()";
  if (!advice.empty()) fail(FPT_ERR_RESULT_TYPE, label, " is ", advice);
  if (tensor.is_meta()) fail(FPT_ERR_DEVICE, label, " is a tensor on the device 'meta', which holds no numbers");
  if (tensor.dim() > FPT_MAX_RANK)
    fail(FPT_ERR_RANK, label, " has ", tensor.dim(), " axes; at most ", FPT_MAX_RANK, " can be passed to Fortran");
  if (dtype_of(tensor.scalar_type()) == FPT_NONE)
    fail(FPT_ERR_DTYPE, label, " is of type ", c10::toString(tensor.scalar_type()),
         ", which has no counterpart in Fortran: convert it in the model");
  if (tensor.is_conj() || tensor.is_neg()) return tensor.resolve_conj().resolve_neg();
  return tensor;
}

at::Tensor tensor_of_numbers(const c10::IValue& value) {
  Numbers numbers;
  const std::optional<std::vector<int64_t>> extents = numbers.add(value);
  if (!extents) return {};
  const auto count = [&](auto is_kind) { return std::count_if(numbers.leaves.begin(), numbers.leaves.end(), is_kind); };
  const auto all = static_cast<std::ptrdiff_t>(numbers.leaves.size());
  const auto logicals = count([](const c10::Scalar& leaf) { return leaf.isBoolean(); });
  if (logicals != 0 && logicals != all) return {};
  at::ScalarType type = at::kDouble;  // and integers of 32 bits where these hold all of them
  if (logicals > 0)
    type = at::kBool;
  else if (count([](const c10::Scalar& leaf) { return leaf.isComplex(); }) > 0)
    type = at::kComplexDouble;
  else if (all > 0 && count([](const c10::Scalar& leaf) { return leaf.isIntegral(false); }) == all)
    type = count([](const c10::Scalar& leaf) { return leaf.toLong() == static_cast<int32_t>(leaf.toLong()); }) == all
               ? at::kInt
               : at::kLong;
  at::Tensor tensor = at::empty({all}, type);
  for (std::ptrdiff_t i = 0; i < all; ++i) tensor[i].fill_(numbers.leaves[static_cast<std::size_t>(i)]);
  return tensor.view(*extents);
}

void Answer::set(c10::IValue value, const std::string& what) {
  if (value.isTensor()) return add_tensor(std::move(value).toTensor(), nullptr, true, what);
  result = std::move(value);
  if (result.isNone()) return;
  if (result.isTuple()) {
    const auto& tuple = result.toTupleRef();
    const auto type = tuple.type();
    const auto* schema = type->schema() ? type->schema().get() : nullptr;
    const auto& elements = tuple.elements();
    is_tuple = true;
    for (std::size_t i = 0; i < elements.size(); ++i)
      add(elements[i], schema ? schema->arguments()[i].name().c_str() : nullptr, what);
  } else if (result.isList()) {
    is_tuple = true;
    for (const c10::IValue& element : result.toListRef()) add(element, nullptr, what);
  } else if (result.isGenericDict()) {
    const auto dict = result.toGenericDict();
    for (const auto& entry : dict) {
      if (!entry.key().isString())
        fail(FPT_ERR_RESULT_TYPE, "the result of ", what, " is a dict with keys of type ", entry.key().tagKind(),
             "; keys must be strings");
      if (!entry.value().isNone()) add(entry.value(), entry.key().toStringRef().c_str(), what);
    }
  } else {
    add(result, nullptr, what);
  }
}

void Answer::set(std::vector<at::Tensor> results, std::vector<std::string> result_names, const std::string& what) {
  names = std::move(result_names);
  for (std::size_t i = 0; i < results.size(); ++i)
    add_tensor(std::move(results[i]), names.empty() ? nullptr : names[i].c_str(), results.size() == 1, what);
}

void Answer::add(const c10::IValue& value, const char* name, const std::string& what) {
  const bool single = &value == &result;
  if (value.isTensor()) return add_tensor(value.toTensor(), name, single, what);
  if (!single && (value.isList() || value.isTuple()))
    if (at::Tensor numbers = tensor_of_numbers(value); numbers.defined())
      return add_tensor(std::move(numbers), name, single, what);
  fpt_direct_value& slot = values.emplace_back();
  tensors.emplace_back();
  slot.name = name;
  slot.device_type = Device::host_type;
  if (value.isBool()) return set_number<uint8_t>(slot, FPT_BOOL, value.toBool());
  if (value.isInt()) return set_number<int64_t>(slot, FPT_INT64, value.toInt());
  if (value.isDouble()) return set_number<double>(slot, FPT_FLOAT64, value.toDouble());
  if (value.isComplexDouble()) return set_number(slot, FPT_COMPLEX128, value.toComplexDouble());
  if (value.isString()) {
    slot.kind = FPT_DIRECT_TEXT;
    slot.dtype = FPT_TEXT;
    slot.data = const_cast<char*>(value.toStringRef().data());
    slot.length = static_cast<int64_t>(value.toStringRef().size());
    return;
  }
  const std::string label = label_of(name, values.size(), single, what);
  if (value.isNone())
    fail(FPT_ERR_RESULT_TYPE, label, " is None; a function has either no result at all or every result has a value");
  if (value.isTuple() || value.isList() || value.isGenericDict())
    fail(FPT_ERR_RESULT_TYPE, label, " is a container inside another; results may not be nested, return ", allowed,
         "; in it, lists of equal length with numbers alone, or logicals alone, are an array");
  fail(FPT_ERR_RESULT_TYPE, label, " is of type ", value.tagKind(), "; return ", allowed);
}

void Answer::add_tensor(at::Tensor tensor, const char* name, bool single, const std::string& what) {
  if (!is_plain(tensor)) {
    const std::string label = label_of(name, values.size() + 1, single, what);
    if (!tensor.defined()) fail(FPT_ERR_RESULT_TYPE, label, " is no tensor: it is undefined");
    tensor = plain(std::move(tensor), label);
  }
  tensors.push_back(std::move(tensor));
  fpt_direct_value& slot = values.emplace_back();
  slot.name = name;
  describe(slot, tensors.back());
}

void Answer::describe(fpt_direct_value& slot, const at::Tensor& tensor) {
  slot.kind = FPT_DIRECT_TENSOR;
  set_memory(slot, array_of_tensor(tensor, true));
}

fpt_direct_value Answer::on_host(std::size_t index, bool widened) {
  const at::Tensor& tensor = tensors[index];
  const c10::InferenceMode normal(false);
  const bool converts = widened && is_half(dtype_of(tensor.scalar_type()));
  copies.push_back(tensor.detach().to(at::kCPU, converts ? at::kFloat : tensor.scalar_type()));
  fpt_direct_value copy{};
  describe(copy, copies.back());
  return copy;
}

void Answer::clear() noexcept {
  values.clear();
  tensors.clear();
  copies.clear();
  names.clear();
  result = c10::IValue();
  is_tuple = false;
  changed = 0;
}

std::unique_ptr<Answer> take_answer() {
  std::unique_ptr<Answer>& spare = PerThread<Spare>::get().answer;
  return spare ? std::move(spare) : std::make_unique<Answer>();
}

void release_answer(std::unique_ptr<Answer> answer) noexcept {
  answer->clear();
  Spare* spare = PerThread<Spare>::find();  // none in a thread that only reads results of others
  if (spare && !spare->answer) spare->answer = std::move(answer);
}

void hand_out(std::unique_ptr<Answer> answer, fpt_direct_answer& out) noexcept {
  out.values = answer->values.data();
  out.count = static_cast<int32_t>(answer->values.size());
  out.is_tuple = answer->is_tuple;
  out.changed = answer->changed;
  out.owner = answer.release();
}

}  // namespace fpt::direct
