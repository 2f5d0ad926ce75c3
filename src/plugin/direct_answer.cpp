// SPDX-License-Identifier: MIT
#include "plugin/direct_answer.hpp"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <optional>

#include "arrays/fit.hpp"
#include "base/cuda_context.hpp"
#include "plugin/direct_tensor.hpp"
#include "plugin/failure.hpp"
#include "plugin/tensors.hpp"

namespace fpt::direct {
namespace {

constexpr const char* allowed = "tensors, numbers, strings, or a tuple, list, dict or named tuple of those";

std::string label_of(const char* name, std::size_t number, bool single, const std::string& what) {
  if (name) return concat("result \"", name, "\" of ", what);
  return single ? "the result of " + what : concat("result ", number, " of ", what);
}

/// A number or a text; none for anything else.
std::optional<Scalar> scalar_in(const c10::IValue& value) {
  if (value.isBool()) return value.toBool();
  if (value.isInt()) return value.toInt();
  if (value.isDouble()) return value.toDouble();
  if (value.isComplexDouble()) return std::complex<double>(value.toComplexDouble());
  if (value.isString()) return std::string_view(value.toStringRef());
  return std::nullopt;
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

void DirectAnswer::set(c10::IValue value, const std::string& what) {
  if (value.isTensor()) return add_tensor(std::move(value).toTensor(), nullptr, true, what);
  result_ = std::move(value);
  if (result_.isNone()) return;
  if (result_.isTuple()) {
    const auto& tuple = result_.toTupleRef();
    const auto type = tuple.type();
    const auto* schema = type->schema() ? type->schema().get() : nullptr;
    const auto& elements = tuple.elements();
    is_tuple_ = true;
    for (std::size_t i = 0; i < elements.size(); ++i)
      add(elements[i], schema ? schema->arguments()[i].name().c_str() : nullptr, what);
  } else if (result_.isList()) {
    is_tuple_ = true;
    for (const c10::IValue& element : result_.toListRef()) add(element, nullptr, what);
  } else if (result_.isGenericDict()) {
    const auto dict = result_.toGenericDict();
    for (const auto& entry : dict) {
      if (!entry.key().isString())
        fail(FPT_ERR_RESULT_TYPE, "the result of ", what, " is a dict with keys of type ", entry.key().tagKind(),
             "; keys must be strings");
      if (!entry.value().isNone()) add(entry.value(), entry.key().toStringRef().c_str(), what);
    }
  } else {
    add(result_, nullptr, what);
  }
}

void DirectAnswer::set(std::vector<at::Tensor> results, std::vector<std::string> result_names,
                       const std::string& what) {
  names_ = std::move(result_names);
  for (std::size_t i = 0; i < results.size(); ++i)
    add_tensor(std::move(results[i]), names_.empty() ? nullptr : names_[i].c_str(), results.size() == 1, what);
}

void DirectAnswer::add(const c10::IValue& value, const char* name, const std::string& what) {
  const bool single = &value == &result_;
  if (value.isTensor()) return add_tensor(value.toTensor(), name, single, what);
  if (!single && (value.isList() || value.isTuple()))
    if (at::Tensor numbers = tensor_of_numbers(value); numbers.defined())
      return add_tensor(std::move(numbers), name, single, what);
  const std::optional<Scalar> scalar = scalar_in(value);
  if (scalar) {
    tensors_.emplace_back();
    contents_.push_back({name, *scalar});
    return;
  }
  const std::string label = label_of(name, contents_.size() + 1, single, what);
  if (value.isNone())
    fail(FPT_ERR_RESULT_TYPE, label, " is None; a function has either no result at all or every result has a value");
  if (value.isTuple() || value.isList() || value.isGenericDict())
    fail(FPT_ERR_RESULT_TYPE, label, " is a container inside another; results may not be nested, return ", allowed,
         "; in it, lists of equal length with numbers alone, or logicals alone, are an array");
  fail(FPT_ERR_RESULT_TYPE, label, " is of type ", value.tagKind(), "; return ", allowed);
}

void DirectAnswer::add_tensor(at::Tensor tensor, const char* name, bool single, const std::string& what) {
  if (!is_plain(tensor)) {
    const std::string label = label_of(name, contents_.size() + 1, single, what);
    if (!tensor.defined()) fail(FPT_ERR_RESULT_TYPE, label, " is no tensor: it is undefined");
    tensor = plain(std::move(tensor), label);
  }
  tensors_.push_back(std::move(tensor));
  contents_.push_back({name, false});
}

DirectAnswer::~DirectAnswer() {
  const CallerContext gpu;  // results may be let go outside of a call
  copies_.clear();
  tensors_.clear();
  result_ = c10::IValue();
}

void DirectAnswer::keep_if_shared(const Array& input, std::shared_ptr<void> owner) {
  const auto is_shared = [&input](const at::Tensor& tensor) {
    return tensor.defined() && fpt::overlap(array_of_tensor(tensor, true), input);
  };
  if (std::any_of(tensors_.begin(), tensors_.end(), is_shared)) kept_.push_back({input, std::move(owner)});
}

ResultList DirectAnswer::list() const {
  ResultList list{static_cast<int32_t>(contents_.size()), {}, is_tuple_};
  if (!contents_.empty() && contents_[0].name)
    for (const Content& each : contents_) list.names.push_back(each.name);
  return list;
}

Value DirectAnswer::value(int32_t index) {
  if (result(index).defined()) return {array_of_tensor(result(index), true), "Tensor"};
  const Scalar& scalar = contents_[static_cast<std::size_t>(index)].scalar;
  return {scalar, type_name(scalar)};
}

Array DirectAnswer::copy_of(int32_t index, bool widened) {
  return translated([&] {
    at::Tensor& copy = copies_[{index, widened}];
    const at::Tensor& tensor = result(index);
    const c10::InferenceMode normal(false);
    if (!copy.defined()) copy = tensor.detach().to(at::kCPU, widened ? at::kFloat : tensor.scalar_type());
    return array_of_tensor(copy, true);
  });
}

Array DirectAnswer::on_host(int32_t index) {
  return result(index).is_cpu() ? array_of_tensor(result(index), true) : copy_of(index, false);
}

Array DirectAnswer::convertible(int32_t index) {
  return is_half(dtype_of(result(index).scalar_type())) ? copy_of(index, true) : on_host(index);
}

TensorPtr DirectAnswer::tensor(int32_t index, bool same_layout, bool on_host) {
  const Array array = on_host ? this->on_host(index) : array_of_tensor(result(index), true);
  const auto kept =
      std::find_if(kept_.begin(), kept_.end(), [&](const Kept& input) { return fpt::overlap(input.memory, array); });
  // the owner itself: a result that becomes an input again and again would be a chain of answers without end
  return Tensor::of_memory(array, kept != kept_.end() ? kept->owner : shared_from_this(), same_layout);
}

void DirectAnswer::copy(const Array& source, const Array& target) {
  translated([&] { tensor_on(target, true).copy_(tensor_on(source, true)); });
}

void DirectAnswer::wait(Device device) {
  translated([&] { wait_for(device); });
}

bool DirectAnswer::copy_at_once(const fpt_arg& output, bool same_layout) const {
  if (contents_.size() != 1 || (contents_[0].name && !is_tuple_) || output.name[0]) return false;
  const at::Tensor& tensor = tensors_[0];
  return tensor.defined() && tensor.is_cpu() && copy_plainly(array_of_tensor(tensor, same_layout), output);
}

TensorPtr RecordedAnswer::tensor(int32_t index, bool same_layout, bool on_host) {
  return translated([&] {
    const at::AutoGradMode gradients(true);  // a copy goes on with the graph, whatever the mode is by now
    return shared_tensor_of(on_host ? result(index).to(at::kCPU) : result(index), same_layout);
  });
}

}  // namespace fpt::direct
