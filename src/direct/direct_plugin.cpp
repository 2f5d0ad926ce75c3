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
#include "python/environment.hpp"
#include "python/own_parts.hpp"
#include "python/python_library.hpp"

namespace fs = std::filesystem;

namespace fpt {
namespace {

std::atomic<const fpt_direct_table*> opened{nullptr};

constexpr const char* plugin_name = "libftn_pytorch_direct.so";

/// The plug-in, and the torch that it was built for: written beside it, since only libtorch could tell what is in it.
struct Plugin {
  fs::path file;
  TorchLocation torch;
};

Plugin plugin_in(const fs::path& folder) {
  Plugin plugin{folder / plugin_name, {}};
  std::ifstream description(folder / "libftn_pytorch_direct.torch");
  if (std::getline(description, plugin.torch.folder) && std::getline(description, plugin.torch.version)) return plugin;
  return {};
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
void require_right_numbers(const fpt_direct_table& table) {
  if (functions_of_torch().empty()) return;
  const char* wrong = nullptr;
  const fpt_status status = table.find_wrong_numbers(&wrong);
  if (status != FPT_OK) fail(status, table.error_text());
  judge_numbers(wrong ? wrong : "", obstacle_to_own_names());
}

const fpt_direct_table& open_plugin() {
  const std::string obstacle = direct_obstacle();
  if (!obstacle.empty()) fail(direct_torch().folder.empty() ? FPT_ERR_IMPORT : FPT_ERR_VERSION, obstacle);
  const std::string file = plugin().file.string();
  // where torch is there already, it has its functions, and what brought it has looked at them
  if (!own_names_first() && loaded_torch().folder.empty()) require_usable_blas(obstacle_to_own_names());
  // for the life of the process: torch registers itself in many places
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE | own_names_first());
  if (!library) fail(FPT_ERR_IMPORT, "the direct path could not be loaded: ", dlerror());
  const auto get = reinterpret_cast<decltype(&fpt_direct_table_get)>(dlsym(library, FPT_DIRECT_SYMBOL));
  const fpt_direct_table* table = get ? get() : nullptr;
  if (!table || table->version != FPT_DIRECT_VERSION || table->abi != FPT_ABI)
    fail(FPT_ERR_VERSION, file, " is not of the same build as this library: ", direct_cure());
  const TorchLocation& wanted = direct_torch();
  const TorchLocation found = loaded_torch();
  if (!same_torch(wanted, found))
    fail(FPT_ERR_VERSION, "the direct path was built for ", text_of(wanted), " and found ", text_of(found),
         ": does LD_LIBRARY_PATH or LD_PRELOAD name another libtorch?");
  table->on_warning(
      [](const char* text, int64_t length) { warn(std::string(text, static_cast<std::size_t>(length))); });
  require_right_numbers(*table);
  const int64_t threads = wanted_threads();
  if (threads != 0 && table->set_threads(threads) != FPT_OK) fail(FPT_ERR_INTERNAL, table->error_text());
  return *table;
}

}  // namespace

const TorchLocation& direct_torch() { return plugin().torch; }

std::string direct_obstacle() {
  const TorchLocation& wanted = direct_torch();
  if (wanted.folder.empty() && !named_folder().empty())
    return concat("FTN_PYTORCH_EXTENSIONS is \"", named_folder(), "\", where the direct path is not: ", direct_cure());
  if (wanted.folder.empty()) return concat("the direct path is not built: ", direct_cure());
  if (opened_direct_plugin()) return {};
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

const fpt_direct_table& direct_plugin() {
  if (const fpt_direct_table* table = opened_direct_plugin()) return *table;
  static std::mutex& mutex = *new std::mutex;
  const std::lock_guard<std::mutex> lock(mutex);
  if (!opened_direct_plugin()) opened.store(&open_plugin(), std::memory_order_release);
  return *opened_direct_plugin();
}

const fpt_direct_table* opened_direct_plugin() noexcept { return opened.load(std::memory_order_acquire); }

void require_direct(fpt_status status) {
  if (status != FPT_OK) throw Error(status, opened_direct_plugin()->error_text());
}

}  // namespace fpt
