// SPDX-License-Identifier: MIT
/// A folder of checkpoints: names that sort by step, which one a restart takes, and which ones are kept. The rules are
/// those of python/ftn_pytorch/checkpoint/folder.py, so that both languages can share a folder.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/file_lock.hpp"

namespace fpt::direct {

/// One checkpoint of a folder.
struct FolderEntry {
  int64_t step;
  std::string path;
};

/// "checkpoint-000000000012.ckpt"
[[nodiscard]] std::string checkpoint_name(int64_t step);

/// FPT_ERR_NO_CHECKPOINT if there is neither a file nor a folder of that name. The folder that it would lie in is made
/// for a name without extension, with a warning if it cannot be: the first checkpoint would tell it after hours.
void require_checkpoint(const std::string& path);

/// What one owner, such as a loaded model, does with one folder. It holds the lock from its first file on, as long as
/// it lives.
class CheckpointFolder {
 public:
  /// Nothing is looked at and nothing made yet. `path` is one of checkpoint_path.
  explicit CheckpointFolder(std::string path) : path_(std::move(path)) {}

  const std::string& path() const noexcept { return path_; }

  /// Checkpoints that are there, latest step first. FPT_ERR_FILE if the folder cannot be read.
  [[nodiscard]] std::vector<FolderEntry> entries() const;

  /// Those that a restart may take, best first. FPT_ERR_NO_CHECKPOINT if there are none, or none of that step.
  [[nodiscard]] std::vector<FolderEntry> candidates(std::optional<int64_t> step) const;

  /// A restart took that step; later ones are of a run that was given up.
  void went_on_from(int64_t step) noexcept { reached_ = step; }

  /// Write one checkpoint and remove the oldest beyond `keep`; `write_file` gets path and step. Returns the path.
  ///
  /// Without a step it is one more than the last. The one just written is always among those that stay.
  /// FPT_ERR_ARGUMENT if it would not be the latest of the folder, except for later ones of a run that was given up:
  /// they get the ending ".abandoned" (".abandoned.2", ... where that is taken), and stay. FPT_ERR_LOCKED while
  /// somebody else holds the folder, FPT_ERR_FILE if it cannot be written.
  std::string write(int64_t keep, std::optional<int64_t> step,
                    const std::function<void(const std::string& path, int64_t step)>& write_file);

 private:
  void lock();
  void set_aside(const std::vector<FolderEntry>& there, int64_t kept, int64_t step) const;

  std::string path_;
  std::unique_ptr<FileLock> lock_;
  std::optional<int64_t> reached_;
};

}  // namespace fpt::direct
