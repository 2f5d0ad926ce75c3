// SPDX-License-Identifier: MIT
#include "plugin/file_owner.hpp"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <optional>
#include <string_view>

#include "base/error.hpp"
#include "base/json_field.hpp"
#include "ftr/checkpoint_file.hpp"

namespace fpt::direct {
namespace {

/// What stands behind the directory of a zip archive; empty for other files.
std::string comment_of(const std::string& file) {
  constexpr std::streamoff size_of_end = 22, largest_comment = 65535;
  std::ifstream archive(file, std::ios::binary | std::ios::ate);
  const std::streamoff size = archive ? static_cast<std::streamoff>(archive.tellg()) : 0;
  std::string tail(static_cast<std::size_t>(std::min(size, size_of_end + largest_comment)), '\0');
  archive.seekg(-static_cast<std::streamoff>(tail.size()), std::ios::end);
  if (!archive.read(tail.data(), static_cast<std::streamsize>(tail.size()))) return {};
  const std::size_t end = tail.rfind("PK\5\6");
  return end == std::string::npos ? std::string() : tail.substr(std::min(tail.size(), end + size_of_end));
}

int number_in(std::string_view description, const char* key, int otherwise) {
  const std::string_view told = json_field(description, key);
  std::from_chars(told.data(), told.data() + told.size(), otherwise);
  return otherwise;
}

}  // namespace

void refuse_other_rank(const std::string& file) {
  const std::optional<std::string> own = job();
  if (!own) return;
  std::string about = ftr::CheckpointFile::description_of(file);
  if (about.empty()) about = comment_of(file);
  if (json_field(about, "job") != *own) return;
  const int writer = number_in(about, "rank_of_job", rank().number);
  if (writer != rank().number)
    fail(FPT_ERR_LOCKED, file, " was written by rank ", writer, " of this job, and this is rank ", rank().number,
         ": give each rank a name of its own by writing %r for the rank, or write on one rank");
}

void warn_of_other_rank(const std::string& description, const std::string& file, Rank own) {
  const int writer = number_in(description, "rank", own.number);
  if (own.count > 1 && number_in(description, "ranks", 1) > 1 && writer != own.number)
    warn(concat(file, " was written by rank ", writer, ": random states, buffers and config are those of that one. ",
                "Where ranks train together each needs a file of its own: write %r for the rank"));
}

void sign_archive(std::ostream& archive) {
  const std::optional<std::string> own = job();
  if (!own) return;
  const std::string comment = concat(R"({"job": ")", *own, R"(", "rank_of_job": )", rank().number, "}");
  const auto size = static_cast<uint16_t>(comment.size());
  archive.seekp(-2, std::ios::end);
  archive.put(static_cast<char>(size & 255)).put(static_cast<char>(size >> 8));
  archive << comment;
}

}  // namespace fpt::direct
