// SPDX-License-Identifier: MIT
#include "node/rank_place.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <utility>

#include "base/error.hpp"
#include "base/switches.hpp"
#include "base/threads.hpp"

namespace fpt {
namespace {

// Beginnings of "NAME=value"
constexpr const char* pools[] = {"OMP_NUM_THREADS=", "OPENBLAS_NUM_THREADS=", "MKL_NUM_THREADS="};
constexpr const char* observing[] = {"FTN_PYTORCH_LOG=", "FTN_PYTORCH_PROFILE=", "FTN_PYTORCH_TRACE=",
                                     "FTN_PYTORCH_RECORD=", "FTN_PYTORCH_TORCH_PROFILE="};
// What launchers tell their processes
constexpr const char* of_jobs[] = {"OMPI_",           "PMI_",   "PMIX_", "MPI_LOCAL",
                                   "MV2_COMM_WORLD_", "SLURM_", "PALS_", "LOCAL_RANK="};
constexpr std::size_t most_cores = 1u << 16;

template <class Beginnings>
bool begins_with_any(const std::string& text, const Beginnings& beginnings) {
  return std::any_of(std::begin(beginnings), std::end(beginnings),
                     [&](const char* begin) { return text.compare(0, std::strlen(begin), begin) == 0; });
}

template <class Beginnings>
void remove(std::vector<std::string>& variables, const Beginnings& beginnings) {
  variables.erase(std::remove_if(variables.begin(), variables.end(),
                                 [&](const std::string& each) { return begins_with_any(each, beginnings); }),
                  variables.end());
}

std::vector<std::string> variables_of_process() {
  std::vector<std::string> found;
  for (char** each = environ; each && *each; ++each) found.emplace_back(*each);
  remove(found, observing);
  return found;
}

std::string own_cores() {
  for (std::size_t bytes = CPU_ALLOC_SIZE(1024); bytes <= CPU_ALLOC_SIZE(most_cores); bytes *= 2) {
    std::string mask(bytes, '\0');
    if (sched_getaffinity(0, bytes, reinterpret_cast<cpu_set_t*>(mask.data())) == 0) return mask;
  }
  return {};
}

}  // namespace

RankPlace RankPlace::here(int32_t rank, int32_t size) {
  RankPlace place;
  place.rank = rank;
  place.size = size;
  place.parent = getppid();
  place.threads = wanted_threads();
  std::error_code ignored;
  place.folder = std::filesystem::current_path(ignored).string();
  place.variables = variables_of_process();
  place.cores = own_cores();
  return place;
}

void RankPlace::enter(const std::vector<std::string>& before) {
  for (std::string& each : variables_of_process()) {
    const auto is_it = [&each, length = each.find('=') + 1](const std::string& other) {
      return other.compare(0, length, each, 0, length) == 0;
    };
    const auto old = std::find_if(before.begin(), before.end(), is_it);
    const auto own = std::find_if(variables.begin(), variables.end(), is_it);
    const bool was_there = old != before.end(), is_there = own != variables.end();
    if (was_there != is_there || (is_there && *own != *old)) continue;  // the rank has a value of its own, or none
    if (is_there)
      *own = std::move(each);
    else
      variables.push_back(std::move(each));
  }
  clearenv();
  for (const std::string& each : variables) {
    const std::size_t name = each.find('=');
    if (name != std::string::npos && name > 0) setenv(each.substr(0, name).c_str(), each.c_str() + name + 1, 1);
  }
  std::error_code ignored;
  std::filesystem::current_path(folder, ignored);
  if (!cores.empty()) sched_setaffinity(0, cores.size(), reinterpret_cast<const cpu_set_t*>(cores.data()));
}

int64_t RankPlace::team() const {
  if (threads > 0) return threads;
  for (const std::string& each : variables)
    if (each.compare(0, std::strlen(pools[0]), pools[0]) == 0)
      if (const int64_t number = std::atoi(each.c_str() + std::strlen(pools[0])); number > 0) return number;
  return std::max(1, CPU_COUNT_S(cores.size(), reinterpret_cast<const cpu_set_t*>(cores.data())));
}

void warn_of_observers(const char* way) {
  for (const char* name : {"FTN_PYTORCH_RECORD", "FTN_PYTORCH_TORCH_PROFILE"})
    if (!variable_value(name).empty()) warn(concat(name, " has no effect on what is loaded with ", way));
}

std::vector<std::string> environment_of_loader() {
  std::vector<std::string> found = variables_of_process();
  remove(found, pools);
  for (const char* name : pools) found.push_back(std::string(name) + "1");
  return found;
}

std::vector<std::string> environment_of_owner() {
  std::vector<std::string> found = environment_of_loader();
  remove(found, of_jobs);
  return found;
}

}  // namespace fpt
