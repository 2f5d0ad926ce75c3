// SPDX-License-Identifier: MIT
/// Whether a tensor is still, bit for bit, what it was when it was made.
///
/// torch keeps shape, strides, offset, element type, storage and the place of gradients in one object, c10::TensorImpl.
/// A tensor of ours is remembered by a copy of that object, taken before any script has seen it, and by the data pointer
/// in its storage. Where nothing of both has changed, nothing about the tensor has; where anything has, the functions of
/// torch are asked. Comparing takes 5 ns, asking torch 20.
///
/// Which words these are, is found by a self-test on the torch that is there. Nothing here depends on what they mean, but
/// for one: the data pointer is written where a tensor that nobody else knows moves on to other memory. Making a tensor
/// takes torch 0.25 to 0.4 us, moving one 5 ns.
#pragma once

#include <cstddef>
#include <cstdint>

#include "python/pyref.hpp"

namespace fpt {

class TensorImage {
 public:
  /// Find the place of things in this torch. Until it has returned true, nothing matches.
  /// @param tensor          of at most five axes
  /// @param sizes, strides  where torch keeps those of `tensor`
  /// @param data            its first element
  static bool learn(PyObject* tensor, const int64_t* sizes, const int64_t* strides, const void* data) noexcept;
  /// Nothing matches from now on.
  static void forget() noexcept { impl_offset_ = 0, may_move_ = false; }
  /// To be said once a self-test has moved tensors.
  static void allow_moves() noexcept { may_move_ = true; }
  static bool may_move() noexcept { return may_move_; }

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

  /// Of a tensor that matches and has one reference in Python: nothing else refers to it or to its memory either, neither
  /// a view nor a graph, a storage object or a weak reference.
  bool is_unshared(PyObject* tensor) const noexcept {
    const Py_ssize_t weak = Py_TYPE(tensor)->tp_weaklistoffset;
    if (weak != 0 && *reinterpret_cast<PyObject* const*>(reinterpret_cast<const char*>(tensor) + weak)) return false;
    const Word* storage = data_word_ - data_word_of_storage;
    Word difference = impl_[references_word] ^ references_;
    for (std::size_t i = 0; i < storage_words; ++i)
      if (i != data_word_of_storage) difference |= storage[i] ^ storage_[i];
    return difference == 0;
  }

  /// Let the tensor stand for memory at `data` in place of that at `from`, which it was made of; shape, strides and type
  /// stay. For tensors that match and are unshared. False where that is not possible; then nothing has happened.
  bool move(const void* from, void* data) noexcept {
    if (data_ != reinterpret_cast<std::uintptr_t>(from)) return false;
    *data_word_ = data_ = reinterpret_cast<std::uintptr_t>(data);
    return true;
  }

 private:
  using Word [[gnu::may_alias]] = uint64_t;

  // After the pointer to the virtual functions and the reference counts, which may change. The strides end at word 18 in
  // torch 2.13; offset, element count, element type and dispatch keys follow.
  static constexpr std::size_t references_word = 1, first_word = 2, words = 20, storage_word = 2;
  // Of the storage: virtual functions, reference counts, data pointer, owner and its deleter, device, size.
  static constexpr std::size_t storage_words = 7, data_word_of_storage = 2;
  static constexpr int32_t max_axes = 5;

  static const Word* impl_of(PyObject* tensor) noexcept {
    return *reinterpret_cast<const Word* const*>(reinterpret_cast<const char*>(tensor) + impl_offset_);
  }
  static Word* data_word_of(const Word* impl) noexcept {
    return reinterpret_cast<Word*>(impl[storage_word]) + data_word_of_storage;
  }

  static inline std::size_t impl_offset_ = 0;
  static inline bool may_move_ = false;

  const Word* impl_ = nullptr;
  Word* data_word_ = nullptr;
  Word data_ = 0, references_ = 0;
  Word words_[words];
  Word storage_[storage_words];
};

}  // namespace fpt
