// SPDX-License-Identifier: MIT
/// Memory that two processes share, and what they write there for each other. Knows nothing of Python.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

#include "node/descriptor.hpp"

namespace fpt {

/// Memory without a name in any file system, so nothing is left of it when its processes end. It grows, and never
/// moves.
class Segment {
 public:
  /// New memory. FPT_ERR_MEMORY.
  Segment();
  /// That of another process.
  explicit Segment(Descriptor descriptor);
  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  int descriptor() const noexcept { return descriptor_.get(); }
  char* at(int64_t place) const noexcept { return begin_ + place; }
  /// Let it have so many bytes. FPT_ERR_MEMORY.
  void reserve(int64_t bytes);
  int64_t bytes() const noexcept { return bytes_; }

 private:
  void map();

  Descriptor descriptor_;
  char* begin_ = nullptr;
  int64_t mapped_ = 0, bytes_ = 0;
};

/// Writes one thing behind the other. What has the same sizes comes to the same places, so that the arrays of a call
/// lie where those of the last one lay.
class SegmentWriter {
 public:
  SegmentWriter(Segment& segment, int64_t begin) : segment_(segment), end_(begin) {}

  void integer(int64_t value) { number(&value); }
  void real(double value) { number(&value); }
  void text(std::string_view value);
  /// Room for memory with the alignment of arrays; where it begins.
  char* block(int64_t bytes);
  /// What means the same in both processes byte by byte, addresses apart: they are of one build.
  template <class T>
  void object(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    std::memcpy(block(sizeof value), &value, sizeof value);
  }
  /// Numbers, texts, lists of them, and what has such members: fields() names them.
  template <class... Values>
  void add(const Values&... values) {
    (one(values), ...);
  }
  int64_t end() const noexcept { return end_; }

 private:
  void number(const void* value);
  template <class T>
  void one(const T& value) {
    if constexpr (std::is_floating_point_v<T>)
      real(value);
    else if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>)
      integer(static_cast<int64_t>(value));
    else if constexpr (std::is_convertible_v<const T&, std::string_view>)
      text(value);
    else
      std::apply([this](const auto&... each) { add(each...); }, T::fields(value));
  }
  template <class T>
  void one(const std::vector<T>& values) {
    integer(static_cast<int64_t>(values.size()));
    for (const T& each : values) one(each);
  }

  Segment& segment_;
  int64_t end_;
};

/// Reads what was written, in the same order. FPT_ERR_INTERNAL for what cannot be.
class SegmentReader {
 public:
  SegmentReader(Segment& segment, int64_t begin) : segment_(segment), end_(begin) {}

  int64_t integer();
  double real();
  /// Lives until something else is written there.
  std::string_view text();
  char* block(int64_t bytes);
  template <class T>
  void object(T& value) {
    std::memcpy(&value, block(sizeof value), sizeof value);
  }
  template <class T>
  T get() {
    T value{};
    one(value);
    return value;
  }
  int64_t end() const noexcept { return end_; }

 private:
  const char* take(int64_t bytes);
  template <class T>
  void one(T& value) {
    if constexpr (std::is_floating_point_v<T>)
      value = real();
    else if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>)
      value = static_cast<T>(integer());
    else if constexpr (std::is_convertible_v<const T&, std::string_view>)
      value = text();
    else
      std::apply([this](auto&... each) { (one(each), ...); }, T::fields(value));
  }
  template <class T>
  void one(std::vector<T>& values) {
    values.resize(static_cast<std::size_t>(integer()));
    for (T& each : values) one(each);
  }

  Segment& segment_;
  int64_t end_;
};

}  // namespace fpt
