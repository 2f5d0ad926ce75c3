// SPDX-License-Identifier: MIT
/// Files of the operating system that are closed with their objects. Knows nothing of Python.
#pragma once

#include <unistd.h>

#include <utility>
#include <vector>

namespace fpt {

/// A file descriptor, or nothing.
class Descriptor {
 public:
  explicit Descriptor(int number = -1) noexcept : number_(number) {}
  ~Descriptor() { reset(); }
  Descriptor(Descriptor&& other) noexcept : number_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    if (this != &other) {
      reset();
      number_ = other.release();
    }
    return *this;
  }

  int get() const noexcept { return number_; }
  explicit operator bool() const noexcept { return number_ >= 0; }
  int release() noexcept { return std::exchange(number_, -1); }
  void reset() noexcept {
    if (number_ >= 0) close(release());
  }

 private:
  int number_;
};

/// Numbers among the names in a folder of /proc: of threads, of files.
std::vector<int> numbers_in(const char* folder);

/// Close all files with greater numbers. What a program has left open belongs to it: an MPI waits for the end of that.
void close_all_above(int last);

}  // namespace fpt
