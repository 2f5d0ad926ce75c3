// SPDX-License-Identifier: MIT
#include "base/paths.hpp"

#include <dlfcn.h>
#include <link.h>

#include <fstream>

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

bool is_there(const std::filesystem::path& path) noexcept {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

std::string version_in_file(const std::filesystem::path& file) {
  std::ifstream text(file);
  for (std::string line; std::getline(text, line);) {
    if (line.rfind("__version__", 0) != 0) continue;
    const std::size_t begin = line.find_first_of("'\""), end = line.find_last_of("'\"");
    if (begin < end && end != std::string::npos) return line.substr(begin + 1, end - begin - 1);
  }
  return {};
}

std::string loaded_library(std::string_view begin) {
  struct {
    std::string_view begin;
    std::string path;
  } wanted{begin, {}};
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* asked) {
        auto& [start, found] = *static_cast<decltype(wanted)*>(asked);
        const std::string_view path = info->dlpi_name ? info->dlpi_name : "";
        if (path.substr(path.rfind('/') + 1).rfind(start, 0) != 0) return 0;
        found = path;
        return 1;
      },
      &wanted);
  return wanted.path;
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
