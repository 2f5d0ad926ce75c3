// SPDX-License-Identifier: MIT
#include "tensor_image.hpp"

#include <cstring>

namespace fpt {

bool TensorImage::learn(PyObject* tensor, std::size_t impl_offset, const int64_t* sizes, const int64_t* strides,
                        const void* data) noexcept {
  impl_offset_ = impl_offset;
  const auto begin = reinterpret_cast<std::uintptr_t>(impl_of(tensor));
  const auto first = reinterpret_cast<std::uintptr_t>(sizes);
  const auto last = reinterpret_cast<std::uintptr_t>(strides + max_axes);
  constexpr std::size_t end = (first_word + words) * sizeof(Word);
  const bool inside = first >= begin + first_word * sizeof(Word) && strides == sizes + max_axes && last <= begin + end &&
                      last + 4 * sizeof(Word) >= begin + end;
  const bool found = inside && impl_of(tensor)[storage_word] != 0 &&
                     *data_word_of(impl_of(tensor)) == reinterpret_cast<std::uintptr_t>(data);
  if (!found) forget();
  return found;
}

void TensorImage::take(PyObject* tensor, int32_t rank) noexcept {
  impl_ = nullptr;
  if (impl_offset_ == 0 || rank > max_axes) return;
  impl_ = impl_of(tensor);
  data_word_ = data_word_of(impl_);
  data_ = *data_word_;
  for (std::size_t i = 0; i < words; ++i) words_[i] = impl_[first_word + i];
}

}  // namespace fpt
