// SPDX-License-Identifier: MIT
/// One file without what its archive means: archive, description, closing record and digest. docs/ftr-format.md of the
/// project has the format.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ftr/plain_archive.hpp"

namespace ftr {

/// Stands within the first bytes of every archive of ours.
constexpr const char* checkpoint_mark = "ftn_pytorch checkpoint";

enum class FileKind : uint32_t { checkpoint = 0, recording = 1 };

constexpr uint32_t checkpoint_format = 3;
constexpr std::string_view closing_magic = "ftn_pytorch ckpt";
constexpr std::size_t digest_size = 32;

/// What stands before the digest; all numbers are little-endian.
struct ClosingRecord {
  char magic[16];
  uint32_t format, kind;
  uint64_t archive, description;
};
static_assert(sizeof(ClosingRecord) == 40);

/// An opened file of which the digest is right. It may be larger than the memory: nothing of the archive is kept.
class CheckpointFile {
 public:
  /// Why::file if it cannot be read, Why::corrupt if it is damaged or cut off, Why::format if it is none, or
  /// of a later format. `name`: what texts call it, by default its path.
  explicit CheckpointFile(const std::string& file, const std::string& name = {}) : CheckpointFile(file, name, true) {}
  ~CheckpointFile();
  CheckpointFile(const CheckpointFile&) = delete;
  /// What a file says of itself, without a look at the rest; empty for other files, and where it cannot be read.
  [[nodiscard]] static std::string description_of(const std::string& file);

  FileKind kind() const noexcept { return kind_; }
  /// Bytes of the archive, which is at the beginning.
  uint64_t archive_length() const noexcept { return archive_length_; }
  /// JSON, not parsed.
  const std::string& description() const noexcept { return description_; }
  /// Up to `count` bytes of the archive from `position` on; how many they are. Why::file.
  std::size_t read(uint64_t position, void* to, std::size_t count) const;

 private:
  CheckpointFile(const std::string& file, const std::string& name, bool with_digest);
  void check(bool with_digest);
  void check_digest(uint64_t size) const;
  [[noreturn]] void refuse_foreign(uint64_t size) const;
  std::size_t read_any(uint64_t position, void* to, std::size_t count) const;

  std::string file_;
  int descriptor_ = -1;
  FileKind kind_{};
  uint64_t archive_length_ = 0;
  std::string description_;
};

}  // namespace ftr
