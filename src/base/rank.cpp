// SPDX-License-Identifier: MIT
#include "base/rank.hpp"

#include <unistd.h>

#include "base/error.hpp"
#include "base/plain.hpp"
#include "base/switches.hpp"

namespace fpt {
namespace {

// as in system/launcher.py, which tells why SLURM_NTASKS is not among them
constexpr const char* variables[][2] = {
    {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"},
    {"PMI_SIZE", "PMI_RANK"},
    {"MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK"},
    {"SLURM_STEP_NUM_TASKS", "SLURM_PROCID"},
};

// all of a row together
constexpr const char* job_variables[][2] = {
    {"PMIX_NAMESPACE"}, {"OMPI_MCA_ess_base_jobid"}, {"SLURM_JOB_ID", "SLURM_STEP_ID"}};

constexpr const char* local_variables[] = {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID",
                                           "MV2_COMM_WORLD_LOCAL_RANK",  "SLURM_LOCALID",
                                           "PALS_LOCAL_RANKID",          "LOCAL_RANK"};

std::optional<Rank> joined_rank;

int number_of(const char* variable) noexcept {
  return static_cast<int>(whole_number(variable_value(variable)).value_or(-1));
}

/// As _plain of system/launcher.py: what is no plain ASCII, or is escaped in JSON, stands there as in a URL.
std::string plain(const std::string& name) {
  constexpr const char* digits = "0123456789ABCDEF";
  std::string text;
  for (const char each : name) {
    const auto byte = static_cast<unsigned char>(each);
    if (byte < ' ' || byte > '~' || each == '"' || each == '\\')
      text.append({'%', digits[byte >> 4], digits[byte & 15]});
    else
      text += each;
  }
  return text;
}

}  // namespace

Rank rank() noexcept {
  for (const auto& [size, number] : variables)
    if (number_of(size) > 0 && number_of(number) >= 0) return {number_of(number), number_of(size)};
  return {};
}

Rank rank_in_training() noexcept { return joined_rank.value_or(rank()); }

void join_training(Rank rank) noexcept { joined_rank = rank; }

int local_rank() noexcept {
  for (const char* variable : local_variables)
    if (const int number = number_of(variable); number >= 0) return number;
  return 0;
}

std::optional<std::string> job() {
  if (rank().count < 2) return std::nullopt;
  for (const auto& row : job_variables) {
    std::string name = row[0];
    bool is_told = true;
    for (const char* variable : row) {
      if (!variable) continue;
      const std::string_view value = variable_value(variable);
      is_told = is_told && !value.empty();
      if (is_told) name.append(".").append(value);
    }
    if (is_told) return plain(name);
  }
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  return plain(concat(host, ".", getppid()));
}

void warn_of_job(const std::string& text) {
  if (rank().number == 0) warn(text);
}

std::string with_rank(std::string name, int number) {
  const std::string digits = std::to_string(number);
  for (std::size_t at = 0; (at = name.find("%r", at)) != std::string::npos; at += digits.size())
    name.replace(at, 2, digits);
  return name;
}

std::string name_for_rank(const std::string& name) {
  std::string result = with_rank(name);
  if (rank().count == 1 || name.find("%r") != std::string::npos) return result;
  const std::string number = std::to_string(rank().number);
  const std::size_t dot = result.rfind('.'), slash = result.rfind('/');
  const bool has_extension = dot != std::string::npos && (slash == std::string::npos || dot > slash + 1);
  return has_extension ? result.insert(dot, "." + number) : result + "." + number;
}

}  // namespace fpt
