// SPDX-License-Identifier: MIT
#include "rank.hpp"

#include <cstdlib>

namespace fpt {
namespace {

// as in process.py, which tells why SLURM_NTASKS is not among them
constexpr const char* variables[][2] = {
    {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"},
    {"PMI_SIZE", "PMI_RANK"},
    {"MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK"},
    {"SLURM_STEP_NUM_TASKS", "SLURM_PROCID"},
};

int number_of(const char* variable) noexcept {
  const char* text = std::getenv(variable);
  if (!text || *text < '0' || *text > '9') return -1;
  return std::atoi(text);
}

}  // namespace

Rank rank() noexcept {
  for (const auto& [size, number] : variables)
    if (number_of(size) > 0 && number_of(number) >= 0) return {number_of(number), number_of(size)};
  return {};
}

std::string name_for_rank(const std::string& name) {
  const std::string number = std::to_string(rank().number);
  std::string result;
  bool is_placed = rank().count == 1;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name.compare(i, 2, "%r") == 0) {
      result += number;
      is_placed = true;
      ++i;
    } else {
      result += name[i];
    }
  }
  if (is_placed) return result;
  const std::size_t dot = result.rfind('.'), slash = result.rfind('/');
  const bool has_extension = dot != std::string::npos && (slash == std::string::npos || dot > slash + 1);
  return has_extension ? result.insert(dot, "." + number) : result + "." + number;
}

}  // namespace fpt
