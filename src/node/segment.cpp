// SPDX-License-Identifier: MIT
#include "node/segment.hpp"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/error.hpp"

namespace fpt {
namespace {

// Addresses cost nothing. Where a limit forbids so many (ulimit -v), fewer do.
constexpr int64_t most = int64_t{1} << 38, least = int64_t{1} << 24;
constexpr int64_t alignment = 64, step = int64_t{1} << 16;

constexpr int64_t rounded(int64_t bytes, int64_t to) noexcept { return (bytes + to - 1) / to * to; }

[[noreturn]] void refuse(const char* what) {
  const int reason = errno;
  fail(FPT_ERR_MEMORY, "memory that processes of a node share could not be ", what, ": ", std::strerror(reason));
}

}  // namespace

Segment::Segment() : descriptor_(memfd_create("ftn_pytorch", MFD_CLOEXEC)) {
  if (!descriptor_) refuse("made");
  map();
  reserve(step);
}

Segment::Segment(Descriptor descriptor) : descriptor_(std::move(descriptor)) { map(); }

Segment::~Segment() { munmap(begin_, static_cast<std::size_t>(mapped_)); }

/// Far beyond its end: what is there now and what comes later have one address for good.
void Segment::map() {
  for (mapped_ = most; mapped_ >= least; mapped_ /= 2) {
    void* found = mmap(nullptr, static_cast<std::size_t>(mapped_), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
                       descriptor(), 0);
    if (found == MAP_FAILED) continue;
    begin_ = static_cast<char*>(found);
    return;
  }
  refuse("mapped");
}

void Segment::reserve(int64_t bytes) {
  if (bytes <= bytes_) return;
  struct stat file{};
  if (fstat(descriptor(), &file) != 0) refuse("looked at");
  // the other process may have let it grow, and have more addresses for it
  const int64_t wanted = std::max<int64_t>(rounded(bytes, step), std::min<int64_t>(file.st_size, mapped_));
  if (wanted > mapped_)
    fail(FPT_ERR_MEMORY, "a call needs ", wanted, " bytes that processes of a node share, and there are addresses for ",
         mapped_, " (ulimit -v)");
  if (wanted > file.st_size && ftruncate(descriptor(), wanted) != 0) refuse("made larger");
  bytes_ = wanted;
}

void SegmentWriter::number(const void* value) {
  const int64_t begin = end_;
  segment_.reserve(begin + 8);
  std::memcpy(segment_.at(begin), value, 8);
  end_ = begin + 8;
}

void SegmentWriter::text(std::string_view value) {
  integer(static_cast<int64_t>(value.size()));
  const int64_t begin = end_;
  end_ += rounded(static_cast<int64_t>(value.size()), 8);
  segment_.reserve(end_);
  if (!value.empty()) std::memcpy(segment_.at(begin), value.data(), value.size());
}

char* SegmentWriter::block(int64_t bytes) {
  const int64_t begin = rounded(end_, alignment);
  if (bytes < 0 || bytes > most - begin) fail(FPT_ERR_MEMORY, "an array of ", bytes, " bytes cannot be shared");
  end_ = begin + rounded(bytes, 8);
  segment_.reserve(end_);
  return segment_.at(begin);
}

const char* SegmentReader::take(int64_t bytes) {
  if (bytes < 0) fail(FPT_ERR_INTERNAL, "what the processes of a node say to each other is damaged");
  const int64_t begin = end_;
  end_ += rounded(bytes, 8);
  segment_.reserve(end_);
  return segment_.at(begin);
}

int64_t SegmentReader::integer() {
  int64_t value;
  std::memcpy(&value, take(8), 8);
  return value;
}

double SegmentReader::real() {
  double value;
  std::memcpy(&value, take(8), 8);
  return value;
}

std::string_view SegmentReader::text() {
  const int64_t length = integer();
  return {take(length), static_cast<std::size_t>(length)};
}

char* SegmentReader::block(int64_t bytes) {
  end_ = rounded(end_, alignment);
  const int64_t begin = end_;
  take(bytes);
  return segment_.at(begin);
}

}  // namespace fpt
