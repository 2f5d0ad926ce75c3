// SPDX-License-Identifier: MIT
#include "node/descriptor.hpp"

#include <filesystem>

#include "base/plain.hpp"

namespace fpt {

std::vector<int> numbers_in(const char* folder) {
  std::vector<int> numbers;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error))
    if (const auto number = whole_number(entry.path().filename().string()))
      numbers.push_back(static_cast<int>(*number));
  return numbers;
}

void close_all_above(int last) {
  for (const int number : numbers_in("/proc/self/fd"))
    if (number > last) close(number);
}

}  // namespace fpt
