// SPDX-License-Identifier: MIT
#include "python/own_parts.hpp"

#include <filesystem>
#include <sstream>

#include "base/error.hpp"
#include "base/paths.hpp"
#include "base/switches.hpp"
#include "ftn_pytorch.h"
#include "python/environment.hpp"

namespace fs = std::filesystem;

namespace fpt {
namespace {

constexpr bool is_wheel = sizeof(FPT_BUILD_PYTHON) == 1;
const std::string half_begin = "libftn_pytorch_python", half_end = ".so";

/// Packages of Python in which this library lies: <prefix>/lib/python3.N/site-packages, or dist-packages. As the loader
/// has found it, or where the links lead to; empty for any other place, such as one that pip was given by --target.
fs::path packages_around() {
  for (const fs::path& folder : {folder_as_found(), own_folder()}) {
    const fs::path packages = folder.parent_path().parent_path(), python = packages.parent_path();
    const std::string name = packages.filename().string(), library = python.parent_path().filename().string();
    const bool fits = (name == "site-packages" || name == "dist-packages") && (library == "lib" || library == "lib64");
    if (fits && python.filename().string().rfind("python3", 0) == 0) return packages;
  }
  return {};
}

/// The first of PATH that is a program.
std::string first_in_path(const std::string& name) {
  Plain<std::istringstream> path(std::string(variable_value("PATH")));
  for (std::string part; std::getline(path, part, ':');)
    if (!part.empty() && is_program(fs::path(part) / name))
      return absolute_path((fs::path(part) / name).string()).string();
  return {};
}

}  // namespace

bool is_of_wheel() noexcept { return is_wheel; }

std::string default_python() {
  if (!is_wheel) return FPT_BUILD_PYTHON;
  const fs::path packages = packages_around();
  if (packages.empty()) return {};
  const std::string name = std::string("python") + FPT_BUILD_PYTHON_VERSION;
  const fs::path prefix = packages.parent_path().parent_path().parent_path(), own = prefix / "bin" / name;
  std::error_code error;
  // one that is broken is named in a failure, and nothing else runs in its place
  const bool has_own = fs::is_symlink(own, error) || is_there(own) || is_there(prefix / "pyvenv.cfg");
  return has_own ? own.string() : first_in_path(name);
}

const char* default_python_reason() noexcept {
  return is_wheel ? "the Python of the environment in which this library lies"
                  : "the Python this library was built with";
}

std::string python_package_folder() {
  if (is_wheel) return {};
  const fs::path folder = (own_folder() / FPT_PYTHON_PACKAGE_RELATIVE).lexically_normal();
  if (!is_there(folder / "ftn_pytorch" / "_embed.py")) return {};
  std::error_code error;
  // a link in a build tree; an installed one is below the prefix, which has been resolved
  return fs::is_symlink(folder, error) ? resolved(folder).string() : folder.string();
}

void require_package(const std::string& python, const std::string& what) {
  if (!is_wheel) return;
  std::string folder;
  for (const fs::path packages : package_folders(python))
    if (folder.empty() && is_there(packages / "ftn_pytorch" / "_embed.py")) folder = packages.string();
  const std::string cure = concat("(", python, " -m pip install ftn-pytorch==", FPT_VERSION, ")");
  if (folder.empty()) fail(FPT_ERR_IMPORT, what, ", which has no ftn_pytorch: install it there ", cure);
  const std::string known = version_in_file(fs::path(folder) / "ftn_pytorch" / "_version.py"),
                    version = known.empty() ? "unknown" : known;
  if (version != FPT_VERSION)
    fail(FPT_ERR_VERSION, what, ", which has ftn_pytorch ", version, " in ", folder, ", and this library is ",
         FPT_VERSION, ": install the same version there ", cure);
}

std::vector<std::string> own_folders(const std::string& python) {
  std::vector<std::string> folders = {own_folder().string()};
  if (!is_wheel) return folders;
  folders.insert(folders.begin(), folder_as_found().string());
  if (python.empty()) return folders;
  for (const fs::path packages : package_folders(python))
    if (const fs::path folder = packages / "ftn_pytorch" / "lib"; is_there(folder)) folders.push_back(folder.string());
  return folders;
}

std::string python_half(const std::string& version, const std::string& python) {
  // beside the library first: a look at all packages of an environment is many questions to the file system
  for (const std::string& environment : {std::string(), python})
    for (const fs::path folder : own_folders(environment)) {
      const fs::path file = folder / concat(half_begin, version, half_end);
      if (is_there(file)) return file.string();
    }
  return {};
}

std::string versions_here() {
  std::string text = FPT_BUILD_PYTHON_VERSION;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(own_folder(), error)) {
    const std::string name = entry.path().filename().string();
    if (name.rfind(half_begin, 0) != 0 || entry.path().extension() != half_end) continue;
    const std::string version = name.substr(half_begin.size(), name.size() - half_begin.size() - half_end.size());
    if (version != FPT_BUILD_PYTHON_VERSION) text += " and " + version;
  }
  return text;
}

}  // namespace fpt
