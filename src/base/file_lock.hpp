// SPDX-License-Identifier: MIT
/// One writer at a time: a lock file beside what is written, which names its owner.
/// python/ftn_pytorch/system/file_lock.py is the other side of the same protocol. Knows nothing of Python.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>

#include "ftn_pytorch.h"

namespace fpt {

/// Held from construction until the end of the object or of the process, by flock. A forked child closes its descriptor
/// at once: it would keep the lock beyond the death of its parent.
class FileLock {
 public:
  /// FPT_ERR_LOCKED, with its owner, if another process holds it, or somebody else in this one; FPT_ERR_FILE if the
  /// lock file cannot be made. `what` is written: it opens the texts. On a file system without flock nothing is locked,
  /// and a warning says so, once in a process.
  FPT_API FileLock(std::filesystem::path path, const std::string& what);
  FPT_API ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

  /// False without flock, in a forked child, since the lock stays with its parent, and in a replaced folder.
  FPT_API bool is_held() const noexcept;

 private:
  void sign() const noexcept;

  std::filesystem::path path_;
  int descriptor_ = -1;
  pid_t process_;
};

/// Whether a descriptor stays open in a child that is forked from now on, as it does by itself. For locks of Python.
FPT_API void inherit(int descriptor, bool stays_open);

/// FPT_ERR_FILE: `what` cannot be written, for the reason in errno; a folder that is not there is named.
[[noreturn]] void fail_to_write_by_errno(const std::string& what, const std::filesystem::path& folder);

}  // namespace fpt
