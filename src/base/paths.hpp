// SPDX-License-Identifier: MIT
/// Paths with their links followed, and files of loaded libraries.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "ftn_pytorch.h"

namespace fpt {

/// A path with its links followed; as it is where that cannot be done.
std::filesystem::path resolved(const std::filesystem::path& path);

/// A path that stays right when the working directory changes. FPT_ERR_FILE where there is none any more.
[[nodiscard]] FPT_API std::filesystem::path absolute_path(const std::string& file);

/// Whether there is anything of that name.
bool is_there(const std::filesystem::path& path) noexcept;

/// The version that a file of Python code says: __version__ = "0.2.0". Empty if it does not.
std::string version_in_file(const std::filesystem::path& file);

/// Path of the first library in this process whose file has a name that begins so, as the loader has found it; empty
/// if there is none.
std::string loaded_library(std::string_view begin);

/// File of the shared object that contains `address`, as the loader has found it; empty if unknown.
FPT_API std::string object_file_of(const void* address);

/// The shared object that this code is in, all links resolved, once.
FPT_API const std::filesystem::path& own_file();

/// Its folder, where the other files of an installation are looked for.
std::filesystem::path own_folder();

/// The same folder as the loader has found it, links not resolved: package managers link the files of an environment to
/// a store.
std::filesystem::path folder_as_found();

}  // namespace fpt
