// SPDX-License-Identifier: MIT
#include "direct/direct_plugin.hpp"

#include <dlfcn.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/paths.hpp"
#include "base/program_libraries.hpp"
#include "base/release.hpp"
#include "base/switches.hpp"
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
const std::string shipped = "torch-";  // and a minor version: the folders beside this library that a wheel brings

/// The plug-in, and what it was built for: written beside it, since only libtorch could tell what is in it.
struct Plugin {
  fs::path file;
  TorchLocation torch;    // that it is used with; no folder where it does not fit the one at hand
  std::string built_for;  // a version of torch
  std::string version;    // of this library; none in a file of 0.2.0
};

/// What is in a folder. One without a folder of torch is of a wheel, and for all releases of its minor version. What is
/// written there decides, not the name of the folder: the loader would open any.
Plugin plugin_in(const fs::path& folder, const TorchLocation& torch) {
  Plugin plugin{folder / plugin_name, {}, {}, {}};
  std::ifstream description(folder / "libftn_pytorch_direct.torch");
  if (!std::getline(description, plugin.torch.folder) || !std::getline(description, plugin.built_for)) return {};
  std::getline(description, plugin.version);
  plugin.torch.version = plugin.built_for;
  if (plugin.torch.folder.empty() && !torch.minor.empty() && fits_torch(plugin.built_for, torch.version))
    plugin.torch = torch;
  return plugin;
}

/// Minor versions of torch that a wheel has brought plug-ins for, the oldest first.
std::vector<std::string> minors_in(const std::vector<std::string>& folders) {
  std::map<std::pair<int, int>, std::string> found;
  for (const std::string& folder : folders) {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder, error)) {
      const std::string name = entry.path().filename().string();
      if (name.rfind(shipped, 0) != 0) continue;
      const std::string minor = minor_of_release(name.substr(shipped.size()) + ".0");
      if (minor.empty()) continue;
      const std::size_t point = minor.find('.');  // 2.9 is older than 2.11
      found.emplace(std::pair{std::atoi(minor.c_str()), std::atoi(minor.c_str() + point + 1)}, minor);
    }
  }
  std::vector<std::string> minors;
  minors.reserve(found.size());
  for (const auto& each : found) minors.push_back(each.second);
  return minors;
}

std::string named_folder() { return std::string(variable_value("FTN_PYTORCH_EXTENSIONS")); }

/// Where plug-ins are looked for, and the torch that one is wanted for: that which Python would import, or else the one
/// of the environment that this library lies in, since a program of saved models needs no Python.
struct Search {
  std::vector<std::string> folders;
  TorchLocation torch;
};

Search search() {
  const bool is_named = !named_folder().empty(), is_for_any = is_named || is_of_wheel();
  const std::string python = is_for_any ? chosen_executable() : std::string();
  TorchLocation torch = torch_of_python(is_for_any && python.empty() ? default_python() : python);
  if (torch.folder.empty()) torch = loaded_torch();
  return {is_named ? std::vector{named_folder()} : own_folders(python), std::move(torch)};
}

Plugin find_plugin(const Search& wanted) {
  Plugin first;
  const auto fits = [&](const Plugin& found) {
    if (first.file.empty()) first = found;
    // the program may be linked with the library of one environment, and run with the Python of another one
    return !found.torch.folder.empty() && found.version == FPT_VERSION &&
           (wanted.torch.folder.empty() || same_torch(found.torch, wanted.torch));
  };
  for (const fs::path folder : wanted.folders)
    if (const Plugin found = plugin_in(folder, wanted.torch); fits(found)) return found;
  const std::string& minor = wanted.torch.minor;
  for (const fs::path folder : wanted.folders)
    if (const Plugin found = plugin_in(folder / (shipped + minor), wanted.torch); !minor.empty() && fits(found))
      return found;
  return first;
}

/// Why there is none for this torch, and what to do.
std::string text_of_misfit(const Search& wanted, const Plugin& found) {
  if (!found.torch.folder.empty()) return {};
  const std::vector<std::string> minors = minors_in(wanted.folders);
  const bool is_number_alone = wanted.torch.minor.empty() && !minor_of_release(wanted.torch.version).empty();
  if (wanted.torch.folder.empty() && !minors.empty())
    return "the direct path finds no torch: python -m pip install torch";
  if (!found.file.empty())
    return concat(found.file.parent_path().string(), " has the direct path for torch ", found.built_for,
                  ", and not for ", text_of(wanted.torch), ": ", direct_cure());
  if (!minors.empty())
    return concat("the direct path is here for releases of torch ", minors.front(),
                  minors.size() == 1 ? "" : " to " + minors.back(), ", and not for ", text_of(wanted.torch),
                  is_number_alone ? ", which is not from a wheel of PyTorch: " : ": ", direct_cure());
  return named_folder().empty() ? concat("the direct path is not built: ", direct_cure())
                                : concat("FTN_PYTORCH_EXTENSIONS is \"", named_folder(),
                                         "\", where the direct path is not: ", direct_cure());
}

struct Found {
  Plugin plugin;
  std::string misfit;
};

const Found& found() {
  static const Found& kept = *[] {
    const Search wanted = search();
    const Plugin plugin = find_plugin(wanted);
    return new Found{plugin, text_of_misfit(wanted, plugin)};
  }();
  return kept;
}

const Plugin& plugin() { return found().plugin; }

/// By value where the program has such functions: what the loader has taken is nowhere to be read.
void require_right_numbers(TorchSide& side) {
  if (functions_of_torch().empty()) return;
  const char* wrong = side.wrong_product();
  judge_numbers(wrong ? wrong : "", obstacle_to_own_names());
}

TorchSide& open_plugin() {
  const std::string obstacle = direct_obstacle();
  if (!obstacle.empty()) fail(plugin().file.empty() ? FPT_ERR_IMPORT : FPT_ERR_VERSION, obstacle);
  const std::string file = plugin().file.string();
  // where torch is there already, it has its functions, and what brought it has looked at them
  if (!own_names_first() && loaded_torch().folder.empty()) require_usable_blas(obstacle_to_own_names());
  // For the life of the process: torch registers itself in many places. A plug-in of a wheel has no path to libtorch:
  // the loader finds by its name what is loaded.
  const int flags = RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE | own_names_first();
  const std::string libtorch = direct_torch().folder + "/lib/libtorch.so";
  if (!dlopen(libtorch.c_str(), flags) || !dlopen(file.c_str(), flags))
    fail(FPT_ERR_IMPORT, "the direct path could not be loaded: ", dlerror());
  TorchSide* side = provided.load(std::memory_order_acquire);
  if (!side) refuse_foreign(file);
  const TorchLocation found = loaded_torch();
  if (!same_torch(direct_torch(), found))
    fail(FPT_ERR_VERSION, text_of_fit(), " and found ", text_of(found),
         ": does LD_LIBRARY_PATH or LD_PRELOAD name another libtorch?");
  require_right_numbers(*side);
  if (const int64_t threads = wanted_threads(); threads != 0) side->set_threads(threads);
  return *side;
}

}  // namespace

const TorchLocation& direct_torch() { return plugin().torch; }

std::string text_of_plugin() {
  if (direct_torch().folder.empty()) return {};
  return concat(plugin().file.string(), ", compiled with torch ", plugin().built_for, ", for ",
                text_of(direct_torch()));
}

std::string text_of_fit() { return "the direct path was built for " + text_of(direct_torch()); }

std::string direct_obstacle() {
  const TorchLocation& wanted = direct_torch();
  if (!found().misfit.empty()) return found().misfit;
  if (opened_torch_side()) return {};
  if (plugin().version != FPT_VERSION)
    return concat("the direct path in ", plugin().file.parent_path().string(),
                  " was built for another version of this ", "library than ", FPT_VERSION, ": ", direct_cure());
  const TorchLocation there = torch_in(wanted.folder);
  if (there.version != wanted.version)
    return concat(text_of_fit(), ", but there is ",
                  there.folder.empty() ? "no torch there now" : "version " + there.version + " now", ": ",
                  direct_cure());
  const TorchLocation loaded = loaded_torch();
  if (!loaded.folder.empty() && loaded.folder != there.folder)
    return concat(text_of_fit(), ", but this process has loaded ", text_of(loaded),
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
