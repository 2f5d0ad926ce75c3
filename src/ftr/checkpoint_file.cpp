// SPDX-License-Identifier: MIT
#include "ftr/checkpoint_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

#include "ftr/sha256.hpp"

namespace ftr {
namespace {

constexpr std::size_t bytes_at_once = std::size_t{1} << 20;
constexpr std::size_t size_of_tail = sizeof(ClosingRecord) + digest_size;

[[noreturn]] void fail_to_read(const std::string& file, const std::string& reason) {
  fail(Why::file, file, " cannot be read: ", reason);
}

}  // namespace

CheckpointFile::CheckpointFile(const std::string& file, const std::string& name, bool with_digest)
    : file_(name.empty() ? file : name) {
  // not blocking: a pipe would wait for somebody who writes to it
  descriptor_ = open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor_ < 0) fail_to_read(file_, std::strerror(errno));
  try {
    check(with_digest);
  } catch (...) {
    close(descriptor_);
    throw;
  }
}

CheckpointFile::~CheckpointFile() { close(descriptor_); }

std::string CheckpointFile::description_of(const std::string& file) {
  try {
    return CheckpointFile(file, file, /*with_digest=*/false).description();
  } catch (const Refusal&) {
    return {};
  }
}

std::size_t CheckpointFile::read_any(uint64_t position, void* to, std::size_t count) const {
  std::size_t done = 0;
  while (done < count) {
    const ssize_t got =
        pread(descriptor_, static_cast<char*>(to) + done, count - done, static_cast<off_t>(position + done));
    if (got == 0) break;
    if (got > 0)
      done += static_cast<std::size_t>(got);
    else if (errno != EINTR)
      fail_to_read(file_, std::strerror(errno));
  }
  return done;
}

std::size_t CheckpointFile::read(uint64_t position, void* to, std::size_t count) const {
  if (position >= archive_length_) return 0;
  return read_any(position, to, std::min<uint64_t>(count, archive_length_ - position));
}

void CheckpointFile::refuse_foreign(uint64_t size) const {
  std::string start(std::min<uint64_t>(size, bytes_at_once), '\0');
  start.resize(read_any(0, start.data(), start.size()));
  if (start.find(checkpoint_mark) != std::string::npos || start.find(closing_magic) != std::string::npos)
    fail(Why::corrupt, file_, " is damaged: the end of it is missing or has been changed");
  const char* what = start.empty() ? "it is empty"
                     : start.compare(0, 2, "PK") == 0
                         ? "it is a zip archive, as torch.save and torch.jit.save write, or the beginning of one"
                         : "it begins with other bytes";
  fail(Why::format, file_, " is no checkpoint of ftn_pytorch; ", what);
}

void CheckpointFile::check_digest(uint64_t size) const {
  Sha256 sum;
  std::vector<char> bytes(std::min<uint64_t>(size, bytes_at_once));
  for (uint64_t at = 0; at < size - digest_size;) {
    const std::size_t count = read_any(at, bytes.data(), std::min<uint64_t>(bytes.size(), size - digest_size - at));
    if (count == 0) fail_to_read(file_, "it became shorter meanwhile");
    sum.update(bytes.data(), count);
    at += count;
  }
  std::array<unsigned char, digest_size> digest{};
  if (read_any(size - digest_size, digest.data(), digest_size) != digest_size || digest != sum.digest())
    fail(Why::corrupt, file_, " is damaged: its content does not agree with its checksum");
}

void CheckpointFile::check(bool with_digest) {
  struct stat found;
  if (fstat(descriptor_, &found) != 0) fail_to_read(file_, std::strerror(errno));
  if (!S_ISREG(found.st_mode)) fail_to_read(file_, S_ISDIR(found.st_mode) ? "it is a folder" : "it is no regular file");
  const auto size = static_cast<uint64_t>(found.st_size);
  if (size < size_of_tail) refuse_foreign(size);
  ClosingRecord record;
  if (read_any(size - size_of_tail, &record, sizeof record) != sizeof record)
    fail_to_read(file_, "it became shorter meanwhile");
  const uint64_t before = size - size_of_tail;
  if (std::string_view(record.magic, sizeof record.magic) != closing_magic || record.archive > before ||
      record.description != before - record.archive)
    refuse_foreign(size);
  if (with_digest) check_digest(size);
  if (record.format < 1 || record.format > checkpoint_format)
    fail(Why::format, file_, " has format ", record.format,
         " of checkpoints, this version of ftn_pytorch reads format ", checkpoint_format);
  if (record.kind > static_cast<uint32_t>(FileKind::recording))
    fail(Why::format, file_, " is of kind ", record.kind, ", which this version of ftn_pytorch does not know");
  kind_ = static_cast<FileKind>(record.kind);
  archive_length_ = record.archive;
  description_.resize(record.description);
  if (read_any(archive_length_, description_.data(), description_.size()) != description_.size())
    fail_to_read(file_, "it became shorter meanwhile");
}

}  // namespace ftr
