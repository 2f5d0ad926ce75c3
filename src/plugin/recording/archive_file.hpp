// SPDX-License-Identifier: MIT
/// Checkpoints and saved recordings, read and written without Python: names of files as users give them, and writing.
/// ftr/content.hpp has what a file holds.
#pragma once

#include <string>

#include "ftr/content.hpp"

namespace fpt::direct {

/// What a file holds; see ftr::read_content. "%r" in the name is the rank.
///
/// FPT_ERR_FILE if it cannot be read, FPT_ERR_CORRUPT if it is damaged, FPT_ERR_FORMAT if it is no checkpoint with
/// tensors, or has entries that no checkpoint has.
[[nodiscard]] ftr::Content read_archive(const std::string& file);

/// Write a file, completely or not at all; Python reads it, too. Tensors may be on a device; a storage is written once,
/// whole, however many tensors share it.
///
/// FPT_ERR_FILE and FPT_ERR_LOCKED as replace_file, FPT_ERR_RESULT_TYPE for a value that cannot be stored.
void write_archive(const std::string& file, const ftr::Content& content);

}  // namespace fpt::direct
