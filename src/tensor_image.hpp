// SPDX-License-Identifier: MIT
/// Whether a tensor is still, bit for bit, what it was when it was made.
///
/// torch keeps shape, strides, offset, element type, storage and the place of gradients in one object, c10::TensorImpl.
/// A tensor of ours is remembered by a copy of that object, taken before any script has seen it, and by the data pointer
/// in its storage. Where nothing of both has changed, nothing about the tensor has; where anything has, the functions of
/// torch are asked. Comparing takes 5 ns, asking torch 20.
///
/// Which words these are, is found by a self-test on the torch that is there. Nothing here depends on what they mean.
#pragma once

#include <cstddef>
#include <cstdint>

#include "pyref.hpp"

namespace fpt {

class TensorImage {
 public:
  /// Find the place of things in this torch. Until it has returned true, nothing matches.
  /// @param tensor          of at most five axes
  /// @param sizes, strides  where torch keeps those of `tensor`
  /// @param data            its first element
  static bool learn(PyObject* tensor, const int64_t* sizes, const int64_t* strides, const void* data) noexcept;
  /// Nothing matches from now on.
  static void forget() noexcept { impl_offset_ = 0; }

  /// Remember a tensor that torch has just made of memory. Up to five axes: torch keeps those of more elsewhere.
  void take(PyObject* tensor, int32_t rank) noexcept;

  bool matches(PyObject* tensor) const noexcept {
    if (!impl_) return false;
    const Word* impl = impl_of(tensor);
    if (impl != impl_) return false;  // torch.utils.swap_tensors
    Word difference = 0;
    for (std::size_t i = 0; i < words; ++i) difference |= impl[first_word + i] ^ words_[i];
    return difference == 0 && *data_word_ == data_;
  }

 private:
  using Word [[gnu::may_alias]] = uint64_t;

  // After the pointer to the virtual functions and the reference counts, which may change. The strides end at word 18 in
  // torch 2.13; offset, element count, element type and dispatch keys follow.
  static constexpr std::size_t first_word = 2, words = 20, storage_word = 2, data_word_of_storage = 2;
  static constexpr int32_t max_axes = 5;

  static const Word* impl_of(PyObject* tensor) noexcept {
    return *reinterpret_cast<const Word* const*>(reinterpret_cast<const char*>(tensor) + impl_offset_);
  }
  static const Word* data_word_of(const Word* impl) noexcept {
    return reinterpret_cast<const Word*>(impl[storage_word]) + data_word_of_storage;
  }

  static inline std::size_t impl_offset_ = 0;

  const Word* impl_ = nullptr;
  const Word* data_word_ = nullptr;
  Word data_ = 0;
  Word words_[words];
};

}  // namespace fpt
