// SPDX-License-Identifier: MIT
#include "torch/tensor_image.hpp"

#include <cstring>

namespace fpt {

bool TensorImage::learn(PyObject* tensor, const int64_t* sizes, const int64_t* strides, const void* data) noexcept {
  constexpr std::size_t end = (first_word + words) * sizeof(Word);
  const auto first = reinterpret_cast<std::uintptr_t>(sizes), last = reinterpret_cast<std::uintptr_t>(strides + max_axes);
  const auto size = static_cast<std::size_t>(Py_TYPE(tensor)->tp_basicsize);
  forget();
  if (strides != sizes + max_axes) return false;
  for (std::size_t offset = sizeof(PyObject); offset + sizeof(Word) <= size; offset += sizeof(Word)) {
    Word candidate;
    std::memcpy(&candidate, reinterpret_cast<const char*>(tensor) + offset, sizeof candidate);
    // shape and strides stand inside the TensorImpl: only a pointer to that can lie so close before them
    if (first < candidate + first_word * sizeof(Word) || last > candidate + end || last + 4 * sizeof(Word) < candidate + end)
      continue;
    impl_offset_ = offset;
    if (impl_of(tensor)[storage_word] != 0 && *data_word_of(impl_of(tensor)) == reinterpret_cast<std::uintptr_t>(data))
      return true;
    forget();
  }
  return false;
}

void TensorImage::take(PyObject* tensor, int32_t rank) noexcept {
  impl_ = nullptr;
  if (impl_offset_ == 0 || rank > max_axes) return;
  impl_ = impl_of(tensor);
  data_word_ = data_word_of(impl_);
  data_ = *data_word_;
  references_ = impl_[references_word];
  for (std::size_t i = 0; i < words; ++i) words_[i] = impl_[first_word + i];
  for (std::size_t i = 0; i < storage_words; ++i) storage_[i] = data_word_[i - data_word_of_storage];
}

}  // namespace fpt
