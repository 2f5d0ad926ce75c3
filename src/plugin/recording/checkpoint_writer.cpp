// SPDX-License-Identifier: MIT
#include "plugin/recording/checkpoint_writer.hpp"

#include <cstring>
#include <filesystem>
#include <ostream>

#include "base/error.hpp"
#include "base/paths.hpp"
#include "base/rank.hpp"
#include "base/replaced_file.hpp"
#include "ftr/refusal.hpp"
#include "ftr/sha256.hpp"
#include "plugin/file_owner.hpp"
#include "plugin/model.hpp"

namespace fpt::direct {

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
