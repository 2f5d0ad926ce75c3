// SPDX-License-Identifier: MIT
/// One checkpoint file without what its archive means: archive, description, closing record and digest, as
/// python/ftn_pytorch/checkpoint/file.py writes and checks them.
#pragma once

#include <cstdint>
#include <functional>
#include <ostream>
#include <string>

#include "plugin/pickle/plain_archive.hpp"

namespace fpt::direct {

/// Stands within the first bytes of every archive of ours.
constexpr const char* checkpoint_mark = "ftn_pytorch checkpoint";

enum class FileKind : uint32_t { checkpoint = 0, recording = 1 };

/// An opened file of which the digest is right. It may be larger than the memory: nothing of the archive is kept.
class CheckpointFile {
 public:
  /// FPT_ERR_FILE if it cannot be read, FPT_ERR_CORRUPT if it is damaged or cut off, FPT_ERR_FORMAT if it is none, or
  /// of a later format. `name`: what texts call it, by default its path.
  explicit CheckpointFile(const std::string& file, const std::string& name = {});
  ~CheckpointFile();
  CheckpointFile(const CheckpointFile&) = delete;

  FileKind kind() const noexcept { return kind_; }
  /// Bytes of the archive, which is at the beginning.
  uint64_t archive_length() const noexcept { return archive_length_; }
  /// JSON, not parsed.
  const std::string& description() const noexcept { return description_; }
  /// Up to `count` bytes of the archive from `position` on; how many they are. FPT_ERR_FILE.
  std::size_t read(uint64_t position, void* to, std::size_t count) const;

 private:
  void check();
  [[noreturn]] void refuse_foreign(uint64_t size) const;
  std::size_t read_any(uint64_t position, void* to, std::size_t count) const;

  std::string file_;
  int descriptor_ = -1;
  FileKind kind_{};
  uint64_t archive_length_ = 0;
  std::string description_;
};

/// Write a file that is complete or as it was before; `fill` writes the archive, `check` reads it once more. Errors are
/// those of replace_file.
void write_checkpoint_file(const std::string& file, FileKind kind, const std::string& description,
                           const std::function<void(const WriteBytes&)>& fill,
                           const std::function<void(const CheckpointFile&)>& check);

/// The path of a file or folder; "%r" is the rank. FPT_ERR_FILE if the name is empty.
[[nodiscard]] std::string checkpoint_path(const std::string& file);

}  // namespace fpt::direct
