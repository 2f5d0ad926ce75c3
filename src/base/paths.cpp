// SPDX-License-Identifier: MIT
#include "base/paths.hpp"

#include <dlfcn.h>

#include "base/error.hpp"

namespace fpt {

std::filesystem::path resolved(const std::filesystem::path& path) {
  std::error_code error;
  const std::filesystem::path result = std::filesystem::canonical(path, error);
  return error ? path : result;
}

std::filesystem::path absolute_path(const std::string& file) {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::absolute(file, error);
  if (error) fail(FPT_ERR_FILE, file, " is relative to the working directory, which does not exist: ", error.message());
  return path;
}

std::string object_file_of(const void* address) {
  Dl_info info;
  if (!dladdr(address, &info) || !info.dli_fname) return {};
  std::error_code error;
  return std::filesystem::absolute(info.dli_fname, error).lexically_normal().string();
}

const std::filesystem::path& own_file() {
  static const std::filesystem::path file = resolved(object_file_of(reinterpret_cast<const void*>(&own_file)));
  return file;
}

std::filesystem::path folder_as_found() {
  return std::filesystem::path(object_file_of(reinterpret_cast<const void*>(&own_file))).parent_path();
}

std::filesystem::path own_folder() { return own_file().parent_path(); }

}  // namespace fpt
