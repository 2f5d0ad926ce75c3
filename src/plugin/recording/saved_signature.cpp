// SPDX-License-Identifier: MIT
/// What a recording of a file takes, as a text, and what it needs of gradients.
#include <sstream>

#include "plugin/recording/saved_tape.hpp"

namespace fpt::direct {
namespace {

std::string described_axis(const recording::Size& size) {
  if (size.factor == 0) return std::to_string(size.offset);
  std::string text = size.factor == 1 ? "B" : concat(size.factor, "*B");
  if (size.offset != 0) text += concat(size.offset > 0 ? " + " : " - ", std::abs(size.offset));
  return text;
}

}  // namespace

std::string SavedInput::described() const {
  if (!is_tensor) {
    Plain<std::ostringstream> text;
    text << (name.empty() ? "a constant" : name) << " = " << constant;
    return text.str();
  }
  std::string text = name.empty() ? "" : name + " ", axes;
  for (const recording::Size& size : sizes) axes += (axes.empty() ? "" : ", ") + described_axis(size);
  return concat(text, dtype_name(dtype_of(dtype)), " (", axes, ")");
}

std::string SavedTape::described() const {
  std::string text;
  const auto name_of = [&](std::size_t i) {
    return inputs[i].name.empty() ? concat("argument ", i + 1) : inputs[i].name;
  };
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    std::size_t first = 0;
    while (first < i && !(inputs[i].is_tensor && inputs[first].slot == inputs[i].slot)) ++first;
    text += i > 0 ? ", " : "";
    text += first == i ? inputs[i].described() : concat(name_of(i), " the same tensor as ", name_of(first));
  }
  return text;
}

bool SavedGradient::holds(const std::map<std::string, at::Tensor>& arrays) const {
  const auto there = arrays.find(name);
  if (there == arrays.end()) return !tensor.defined();
  return tensor.defined() && is_one_tensor(there->second, tensor);
}

bool is_one_tensor(const at::Tensor& one, const at::Tensor& other) {
  return one.data_ptr() == other.data_ptr() && one.scalar_type() == other.scalar_type() &&
         one.sizes() == other.sizes() && one.strides() == other.strides();
}

}  // namespace fpt::direct
