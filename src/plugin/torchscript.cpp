// SPDX-License-Identifier: MIT
#include "plugin/torchscript.hpp"

#include <dlfcn.h>

#include <atomic>
#include <filesystem>

#include "base/error.hpp"
#include "base/program_libraries.hpp"

namespace fpt::direct {
namespace {

std::atomic<ScriptLoader> known_loader{nullptr};

/// Beside the plug-in.
std::filesystem::path file_of_torchscript() {
  Dl_info own{};
  if (dladdr(reinterpret_cast<const void*>(&provide_torchscript), &own) == 0) return {};
  return std::filesystem::path(own.dli_fname).parent_path() / "libftn_pytorch_torchscript.so";
}

}  // namespace

std::string torchscript_obstacle() {
  const std::filesystem::path file = file_of_torchscript();
  std::error_code ignored;
  if (known_loader.load(std::memory_order_acquire) || std::filesystem::exists(file, ignored)) return {};
  return concat("TorchScript files need ", file.string(), ", which is missing: it is built where torch has torch.jit");
}

std::unique_ptr<Model> load_script(Settings settings) {
  if (!known_loader.load(std::memory_order_acquire)) {
    if (const std::string obstacle = torchscript_obstacle(); !obstacle.empty()) fail(FPT_ERR_IMPORT, obstacle);
    const std::string file = file_of_torchscript().string();
    if (!dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE | own_names_first()))
      fail(FPT_ERR_IMPORT, "TorchScript could not be loaded: ", dlerror());
    if (!known_loader.load(std::memory_order_acquire)) refuse_foreign(file);
  }
  return known_loader.load(std::memory_order_acquire)(std::move(settings));
}

void provide_torchscript(ScriptLoader loader) noexcept { known_loader.store(loader, std::memory_order_release); }

}  // namespace fpt::direct
