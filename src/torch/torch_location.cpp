// SPDX-License-Identifier: MIT
#include "torch/torch_location.hpp"

#include <link.h>
#include <patchlevel.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include "base/error.hpp"

namespace fs = std::filesystem;

namespace fpt {
namespace {

const std::string python_folder = concat("python", PY_MAJOR_VERSION, ".", PY_MINOR_VERSION);

fs::path resolved(const fs::path& path) {
  std::error_code error;
  const fs::path result = fs::canonical(path, error);
  return error ? path : result;
}

/// Value of a key in pyvenv.cfg; empty if there is none.
std::string setting_of(const fs::path& prefix, const std::string& key) {
  std::ifstream file(prefix / "pyvenv.cfg");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name, equals, value;
    if (words >> name >> equals && name == key && equals == "=" && std::getline(words >> std::ws, value)) return value;
  }
  return {};
}

/// Folders that Python puts on sys.path for packages, in its order.
std::vector<fs::path> package_folders(const fs::path& executable) {
  std::vector<fs::path> folders;
  if (const char* variable = std::getenv("PYTHONPATH")) {
    std::istringstream parts(variable);
    for (std::string part; std::getline(parts, part, ':');)
      if (!part.empty()) folders.emplace_back(part);
  }
  const fs::path prefix = executable.parent_path().parent_path();
  std::error_code error;
  const bool is_environment = fs::exists(prefix / "pyvenv.cfg", error);
  const auto add = [&](const fs::path& base) {
    for (const char* library : {"lib", "lib64"}) folders.push_back(base / library / python_folder / "site-packages");
  };
  const char* home = std::getenv("HOME");
  const bool sees_system = !is_environment || setting_of(prefix, "include-system-site-packages") == "true";
  if (is_environment) add(prefix);
  if (home && sees_system) folders.push_back(fs::path(home) / ".local" / "lib" / python_folder / "site-packages");
  if (!sees_system) return folders;
  const fs::path base = is_environment ? resolved(setting_of(prefix, "home")).parent_path()
                                       : resolved(executable).parent_path().parent_path();
  add(base);
  // Debian keeps packages of its own here
  folders.push_back(fs::path("/usr/local/lib") / python_folder / "dist-packages");
  folders.push_back(base / "lib" / "python3" / "dist-packages");
  return folders;
}

}  // namespace

TorchLocation torch_in(const std::string& folder) {
  TorchLocation torch;
  std::ifstream file(fs::path(folder) / "version.py");
  if (!file) return torch;
  torch.folder = resolved(folder).string();
  for (std::string line; std::getline(file, line);) {
    // __version__ = '2.13.0+cpu'
    if (line.rfind("__version__", 0) != 0) continue;
    const auto begin = line.find_first_of("'\""), end = line.find_last_of("'\"");
    if (begin != std::string::npos && end > begin) torch.version = line.substr(begin + 1, end - begin - 1);
  }
  return torch;
}

TorchLocation loaded_torch() {
  std::string library;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* result) {
        const std::string_view name = info->dlpi_name;
        if (name.substr(name.rfind('/') + 1) != "libtorch_cpu.so") return 0;
        *static_cast<std::string*>(result) = name;
        return 1;
      },
      &library);
  if (library.empty()) return {};
  const fs::path folder = resolved(library).parent_path().parent_path();
  TorchLocation torch = torch_in(folder.string());
  torch.folder = folder.string();  // a libtorch without Python has no version.py
  return torch;
}

TorchLocation torch_of_python(const std::string& executable) {
  for (const fs::path& folder : package_folders(executable)) {
    const TorchLocation torch = torch_in((folder / "torch").string());
    if (!torch.folder.empty()) return torch;
  }
  return {};
}

bool same_torch(const TorchLocation& a, const TorchLocation& b) { return a.folder == b.folder && a.version == b.version; }

std::string text_of(const TorchLocation& torch) {
  return concat("torch ", torch.version.empty() ? "of unknown version" : torch.version, " in ", torch.folder);
}

}  // namespace fpt
