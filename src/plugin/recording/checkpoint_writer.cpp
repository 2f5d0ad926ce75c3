// SPDX-License-Identifier: MIT
#include "plugin/recording/checkpoint_writer.hpp"

#include <charconv>
#include <cstring>
#include <filesystem>
#include <optional>
#include <ostream>
#include <string_view>

#include "base/error.hpp"
#include "base/json_field.hpp"
#include "base/paths.hpp"
#include "base/rank.hpp"
#include "base/replaced_file.hpp"
#include "ftr/refusal.hpp"
#include "ftr/sha256.hpp"
#include "plugin/model.hpp"
#include "plugin/recording/pieces.hpp"

namespace fpt::direct {
namespace {

/// Ranks that write one after the other do not meet at the lock, and the last one would win.
void refuse_other_rank(const std::string& file) {
  const std::optional<std::string> own = job();
  if (!own) return;
  const std::string about = ftr::CheckpointFile::description_of(file);
  if (concat("\"", json_field(about, "job"), "\"") != json_text(*own)) return;
  const std::string_view told = json_field(about, "rank_of_job");
  int writer = rank().number;
  std::from_chars(told.data(), told.data() + told.size(), writer);
  if (writer != rank().number)
    fail(FPT_ERR_LOCKED, file, " was written by rank ", writer, " of this job, and this is rank ", rank().number,
         ": give each rank a name of its own by writing %r for the rank, or write on one rank");
}

}  // namespace

std::string checkpoint_path(const std::string& file) {
  require_name(file);
  std::error_code failure;
  const std::filesystem::path path = absolute_path(with_rank(file));
  const std::filesystem::path followed = std::filesystem::weakly_canonical(path, failure);
  return failure ? path.string() : followed.string();
}

void write_checkpoint_file(const std::string& file, ftr::FileKind kind, const std::string& description,
                           const std::function<void(const WriteBytes&)>& fill,
                           const std::function<void(const ftr::CheckpointFile&)>& check) {
  const auto write_all = [&](std::ostream& stream) {
    refuse_other_rank(file);
    ftr::Sha256 sum;
    uint64_t length = 0;
    const WriteBytes write = [&](const void* data, std::size_t size) {
      stream.write(static_cast<const char*>(data), static_cast<std::streamsize>(size));
      sum.update(data, size);
      length += size;
    };
    fill(write);
    ftr::ClosingRecord record{{}, ftr::checkpoint_format, static_cast<uint32_t>(kind), length, description.size()};
    std::memcpy(record.magic, ftr::closing_magic.data(), sizeof record.magic);
    write(description.data(), description.size());
    write(&record, sizeof record);
    const auto digest = sum.digest();
    write(digest.data(), digest.size());
  };
  replace_file(file, write_all, [&](const std::string& part) {
    try {
      check(ftr::CheckpointFile(part, "what was written"));
    } catch (const ftr::Refusal& refusal) {
      if (refusal.why() == ftr::Why::corrupt || refusal.why() == ftr::Why::file)
        fail(FPT_ERR_FILE, file, " cannot be written: ", refusal.what(),
             ". The disk gives back what it was not given: write elsewhere");
      fail(FPT_ERR_RESULT_TYPE, "no restart could read it: ", refusal.what(), ". The older file stays");
    }
  });
}

}  // namespace fpt::direct
