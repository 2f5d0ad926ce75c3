// SPDX-License-Identifier: MIT
#include "direct/direct_plugin.hpp"

#include <dlfcn.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>

#include "base/error.hpp"
#include "base/paths.hpp"
#include "base/program_libraries.hpp"
#include "base/threads.hpp"
#include "direct/torch_side.hpp"
#include "ftn_pytorch.h"
#include "python/environment.hpp"
#include "python/own_parts.hpp"
#include "python/python_library.hpp"

namespace fs = std::filesystem;

namespace fpt {
namespace {

std::atomic<TorchSide*> provided{nullptr};  // while it is loaded
std::atomic<TorchSide*> opened{nullptr};    // when it has been looked at

constexpr const char* plugin_name = "libftn_pytorch_direct.so";

/// The plug-in, and what it was built for: written beside it, since only libtorch could tell what is in it.
struct Plugin {
  fs::path file;
  TorchLocation torch;
  std::string version;  // of this library; none in a file of 0.2.0
};

Plugin plugin_in(const fs::path& folder) {
  Plugin plugin{folder / plugin_name, {}, {}};
  std::ifstream description(folder / "libftn_pytorch_direct.torch");
  if (!std::getline(description, plugin.torch.folder) || !std::getline(description, plugin.torch.version)) return {};
  std::getline(description, plugin.version);
  return plugin;
}

std::string named_folder() {
  const char* named = std::getenv("FTN_PYTORCH_EXTENSIONS");
  return named ? named : "";
}

Plugin find_plugin() {
  if (!named_folder().empty()) return plugin_in(named_folder());
  const std::string python = is_of_wheel() ? chosen_executable() : std::string();
  const TorchLocation torch = torch_of_python(python);
  Plugin first;
  for (const fs::path folder : own_folders(python)) {
    const Plugin found = plugin_in(folder);
    // the program may be linked with the library of one environment, and run with the Python of another one
    if (!found.file.empty() && (torch.folder.empty() || same_torch(found.torch, torch))) return found;
    if (first.file.empty()) first = found;
  }
  return first;
}

const Plugin& plugin() {
  static const Plugin& found = *new Plugin(find_plugin());
  return found;
}

/// By value where the program has such functions: what the loader has taken is nowhere to be read.
void require_right_numbers(TorchSide& side) {
  if (functions_of_torch().empty()) return;
  const char* wrong = side.wrong_product();
  judge_numbers(wrong ? wrong : "", obstacle_to_own_names());
}

TorchSide& open_plugin() {
  const std::string obstacle = direct_obstacle();
  if (!obstacle.empty()) fail(direct_torch().folder.empty() ? FPT_ERR_IMPORT : FPT_ERR_VERSION, obstacle);
  const std::string file = plugin().file.string();
  // where torch is there already, it has its functions, and what brought it has looked at them
  if (!own_names_first() && loaded_torch().folder.empty()) require_usable_blas(obstacle_to_own_names());
  // for the life of the process: torch registers itself in many places
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE | own_names_first());
  if (!library) fail(FPT_ERR_IMPORT, "the direct path could not be loaded: ", dlerror());
  TorchSide* side = provided.load(std::memory_order_acquire);
  if (!side) fail(FPT_ERR_VERSION, file, " belongs to another library than this one, ", own_file().string());
  const TorchLocation& wanted = direct_torch();
  const TorchLocation found = loaded_torch();
  if (!same_torch(wanted, found))
    fail(FPT_ERR_VERSION, "the direct path was built for ", text_of(wanted), " and found ", text_of(found),
         ": does LD_LIBRARY_PATH or LD_PRELOAD name another libtorch?");
  require_right_numbers(*side);
  if (const int64_t threads = wanted_threads(); threads != 0) side->set_threads(threads);
  return *side;
}

}  // namespace

const TorchLocation& direct_torch() { return plugin().torch; }

std::string direct_obstacle() {
  const TorchLocation& wanted = direct_torch();
  if (wanted.folder.empty() && !named_folder().empty())
    return concat("FTN_PYTORCH_EXTENSIONS is \"", named_folder(), "\", where the direct path is not: ", direct_cure());
  if (wanted.folder.empty()) return concat("the direct path is not built: ", direct_cure());
  if (opened_torch_side()) return {};
  if (plugin().version != FPT_VERSION)
    return concat("the direct path in ", plugin().file.parent_path().string(),
                  " was built for another version of this ", "library than ", FPT_VERSION, ": ", direct_cure());
  const TorchLocation there = torch_in(wanted.folder);
  if (there.version != wanted.version)
    return concat("the direct path was built for ", text_of(wanted), ", but there is ",
                  there.folder.empty() ? "no torch there now" : "version " + there.version + " now", ": ",
                  direct_cure());
  const TorchLocation loaded = loaded_torch();
  if (!loaded.folder.empty() && loaded.folder != there.folder)
    return concat("the direct path was built for ", text_of(wanted), ", but this process has loaded ", text_of(loaded),
                  " already, and two do not fit into one process");
  return {};
}

std::string direct_cure() {
  return is_of_wheel() ? "run python -m ftn_pytorch build-direct"
                       : "build this library with -DFTN_PYTORCH_DIRECT=ON and a torch that brings its C++ headers";
}

TorchSide& torch_side() {
  if (TorchSide* side = opened_torch_side()) return *side;
  static std::mutex& mutex = *new std::mutex;
  const std::lock_guard<std::mutex> lock(mutex);
  if (!opened_torch_side()) opened.store(&open_plugin(), std::memory_order_release);
  return *opened_torch_side();
}

TorchSide* opened_torch_side() noexcept { return opened.load(std::memory_order_acquire); }

void provide_torch_side(TorchSide& made) noexcept { provided.store(&made, std::memory_order_release); }

}  // namespace fpt
