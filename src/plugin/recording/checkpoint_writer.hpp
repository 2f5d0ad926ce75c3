// SPDX-License-Identifier: MIT
/// Checkpoint files are written completely or not at all, as python/ftn_pytorch/checkpoint/file.py does it.
#pragma once

#include <functional>
#include <string>

#include "ftr/checkpoint_file.hpp"
#include "plugin/pickle/archive_writer.hpp"

namespace fpt::direct {

/// Write a file that is complete or as it was before; `fill` writes the archive, `check` reads it once more. Errors are
/// those of replace_file, and FPT_ERR_LOCKED if another rank of this job has written the file that is there.
void write_checkpoint_file(const std::string& file, ftr::FileKind kind, const std::string& description,
                           const std::function<void(const WriteBytes&)>& fill,
                           const std::function<void(const ftr::CheckpointFile&)>& check);

/// The path of a file or folder; "%r" is the rank. FPT_ERR_FILE if the name is empty.
[[nodiscard]] std::string checkpoint_path(const std::string& file);

}  // namespace fpt::direct
