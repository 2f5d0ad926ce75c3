// SPDX-License-Identifier: MIT
#include "values/torch_value.hpp"

#include <algorithm>

#include "arrays/scalar.hpp"
#include "arrays/texts.hpp"
#include "base/error.hpp"
#include "values/engine.hpp"

namespace fpt {
namespace {

std::string text_of(const std::vector<int64_t>& shape) {
  std::string text = "(";
  for (std::size_t i = 0; i < shape.size(); ++i) text += (i > 0 ? ", " : "") + std::to_string(shape[i]);
  return text += shape.size() == 1 ? ",)" : ")";
}

TensorFacts facts_of(const Array& array) {
  TensorFacts facts;
  facts.dtype = dtype_name(array.dtype);
  facts.shape.assign(array.extents, array.extents + array.rank);
  return facts;
}

std::string text_of(const fpt_arg& arg, bool same_layout) {
  if (is_tensor_handle(arg.handle)) {
    const TensorPtr tensor = tensor_at(arg.handle);
    TensorFacts facts = facts_of(tensor);
    if (tensor->same_layout() != same_layout) std::reverse(facts.shape.begin(), facts.shape.end());
    return text_of(facts, same_layout);
  }
  if (is_value(arg)) return python_text(scalar_of(arg));
  const Array array = array_of(arg);
  return text_of(facts_of(same_layout ? array : reversed(array)), same_layout);
}

}  // namespace

std::string text_of(const TensorFacts& facts, bool same_layout) {
  std::string text = concat(facts.dtype, ' ', text_of(facts.shape));
  if (same_layout || facts.rank() < 2) return text;
  return concat(text, ", Fortran ", text_of(std::vector<int64_t>(facts.shape.rbegin(), facts.shape.rend())));
}

TorchValue torch_value(const fpt_arg& arg) {
  const auto owner = has_kept_text(arg) ? text_owner(arg, arg.name[0] ? arg.name : "an argument") : nullptr;
  return std::visit(
      [](auto value) -> TorchValue {
        if constexpr (std::is_same_v<decltype(value), std::string_view>)
          return std::string(value);
        else
          return value;
      },
      scalar_of(arg));
}

std::string described(Args inputs, bool same_layout) {
  std::string text = inputs.count > 0 ? "\nIt was called with" : "";
  for (int32_t i = 0; i < inputs.count; ++i) {
    const fpt_arg& arg = inputs[i];
    const std::string label = arg.name[0] ? std::string(arg.name) : concat("argument ", i + 1);
    text += concat("\n  ", label, ": ", text_of(arg, same_layout));
  }
  return text;
}

}  // namespace fpt
