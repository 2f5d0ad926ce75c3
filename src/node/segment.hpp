// SPDX-License-Identifier: MIT
/// Memory that two processes share, and what they write there for each other. Knows nothing of Python.
#pragma once

#include <cstdint>
#include <string_view>

namespace fpt {

/// Memory without a name in any file system, so nothing is left of it when its processes end. It grows, and never
/// moves.
class Segment {
 public:
  /// New memory. FPT_ERR_MEMORY.
  Segment();
  /// That of another process, by its file descriptor, which is taken over.
  explicit Segment(int descriptor);
  ~Segment();
  Segment(Segment&& other) noexcept;
  Segment& operator=(Segment&& other) = delete;

  int descriptor() const noexcept { return descriptor_; }
  char* at(int64_t place) const noexcept { return begin_ + place; }
  /// Let it have so many bytes. FPT_ERR_MEMORY.
  void reserve(int64_t bytes);
  int64_t bytes() const noexcept { return bytes_; }

 private:
  void map();

  int descriptor_;
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
  int64_t end() const noexcept { return end_; }

 private:
  void number(const void* value);

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
  int64_t end() const noexcept { return end_; }

 private:
  const char* take(int64_t bytes);

  Segment& segment_;
  int64_t end_;
};

}  // namespace fpt
