// SPDX-License-Identifier: MIT
/// A file that is there completely or as it was before, whatever happens while it is written.
#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <string_view>

#include "ftn_pytorch.h"

namespace fpt {

/// Write a file: under a temporary name in its folder, brought to disk, and only then under its own. The names of the
/// temporary file and of the lock are those of python/ftn_pytorch/checkpoint, so both sides see each other.
///
/// What killed writers have left is removed. FPT_ERR_FILE if the place cannot be written, or if there is a script (.py)
/// there, FPT_ERR_LOCKED while another process, or another thread, is writing the same file. `check` is given the name
/// of the complete file before it gets its own, and throws if it may not.
FPT_API void replace_file(const std::string& file, const std::function<void(std::ostream&)>& fill,
                          const std::function<void(const std::string&)>& check = {});

/// The file that an entry of a folder is the beginning of; empty where it is none. A writer that was killed has left
/// it.
[[nodiscard]] FPT_API std::string_view name_of_part(std::string_view entry) noexcept;

}  // namespace fpt
