// SPDX-License-Identifier: MIT
#include "node/descriptor.hpp"

#include <dirent.h>

#include <cstdlib>
#include <vector>

namespace fpt {

void close_all_above(int last) {
  std::vector<int> numbers;
  if (DIR* folder = opendir("/proc/self/fd")) {
    while (const dirent* entry = readdir(folder))
      if (const int number = std::atoi(entry->d_name); number > last && number != dirfd(folder))
        numbers.push_back(number);
    closedir(folder);
  }
  for (const int number : numbers) close(number);
}

}  // namespace fpt
