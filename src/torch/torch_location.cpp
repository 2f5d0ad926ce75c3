// SPDX-License-Identifier: MIT
#include "torch/torch_location.hpp"

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
  const fs::path file = fs::path(folder) / "version.py";
  if (!is_there(file)) return torch;
  torch.folder = resolved(folder).string();
  torch.version = version_in_file(file);
  if (is_of_wheel_for_all(folder, torch.version) || is_of_wheel_for_all(torch.folder, torch.version))
    torch.minor = minor_of_release(torch.version);
  return torch;
}

TorchLocation loaded_torch() {
  const std::string library = loaded_library("libtorch_cpu.so");
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
