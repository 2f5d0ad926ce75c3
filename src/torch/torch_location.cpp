// SPDX-License-Identifier: MIT
#include "torch/torch_location.hpp"

#include <link.h>

#include <filesystem>
#include <fstream>

#include "base/error.hpp"
#include "base/paths.hpp"
#include "base/release.hpp"
#include "python/environment.hpp"

namespace fs = std::filesystem;

namespace fpt {
namespace {

/// Whether a package was installed from a wheel for Linux systems of all kinds. conda, Spack, distributions and builds
/// of one's own have numbers of releases, too, but their wheels are for the system at hand, with other libraries.
/// Those of the package index lack the "+cu130" of the version in their names. installation.py has the same rule.
bool is_of_wheel_for_all(const fs::path& folder, const std::string& version) {
  for (const std::string& name : {version, version.substr(0, version.find('+'))}) {
    std::ifstream file(folder.parent_path() / concat("torch-", name, ".dist-info") / "WHEEL");
    for (std::string line; std::getline(file, line);)
      if (line.rfind("Tag:", 0) == 0 && line.find("-manylinux") != std::string::npos) return true;
  }
  return false;
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
  if (is_of_wheel_for_all(folder, torch.version) || is_of_wheel_for_all(torch.folder, torch.version))
    torch.minor = minor_of_release(torch.version);
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
  if (executable.empty()) return {};
  for (const std::string& folder : package_folders(executable)) {
    const TorchLocation torch = torch_in(folder + "/torch");
    if (!torch.folder.empty()) return torch;
  }
  return {};
}

bool same_torch(const TorchLocation& a, const TorchLocation& b) {
  return a.folder == b.folder && a.version == b.version;
}

std::string text_of(const TorchLocation& torch) {
  return concat("torch ", torch.version.empty() ? "of unknown version" : torch.version, " in ", torch.folder);
}

}  // namespace fpt
