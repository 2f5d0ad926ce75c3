// SPDX-License-Identifier: MIT
/// What a recording of a file takes, as a text, and what it needs of gradients.
#include "ftr/memory.hpp"
#include "ftr/refusal.hpp"
#include "ftr/saved_tape.hpp"
#include "ftr/stored_tensor.hpp"

namespace ftr {
namespace {

std::string described_axis(const Size& size) {
  if (size.factor == 0) return std::to_string(size.offset);
  std::string text = size.factor == 1 ? "B" : concat(size.factor, "*B");
  if (size.offset != 0) text += concat(size.offset > 0 ? " + " : " - ", std::abs(size.offset));
  return text;
}

}  // namespace

std::string SavedInput::described() const {
  if (!is_tensor) {
    return concat(name.empty() ? "a constant" : name, " = ", constant);
  }
  std::string text = name.empty() ? "" : name + " ", axes;
  for (const Size& size : sizes) axes += (axes.empty() ? "" : ", ") + described_axis(size);
  return concat(text, name_of(dtype), " (", axes, ")");
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

}  // namespace ftr
