// SPDX-License-Identifier: MIT
#include "python/python_library.hpp"

#include <dlfcn.h>

#include <atomic>
#include <cstring>
#include <mutex>
#include <string_view>

#include "base/error.hpp"
#include "base/paths.hpp"
#include "ftn_pytorch.h"
#include "python/own_parts.hpp"

namespace fpt {
namespace {

enum class State { closed, announced, misfit };
std::atomic<State> state{State::closed};

/// What was chosen while the half with Python was opened, and from which argument; no executable before.
struct Opened {
  std::string argument;
  PythonChoice choice;
};
Opened& opened = *new Opened;
std::mutex& opening = *new std::mutex;

// After everything that the half provides while it is opened, which other threads may ask for.
std::atomic<bool> is_open{false};

/// A function of the Python in this process; null if there is none.
void* function_of_python(const char* name) {
  if (void* found = dlsym(RTLD_DEFAULT, name)) return found;
  // a plug-in of the program may have brought one that others do not see
  const std::string file = loaded_library("libpython3.");
  void* library = file.empty() ? nullptr : dlopen(file.c_str(), RTLD_LAZY | RTLD_NOLOAD);
  if (!library) return nullptr;
  void* found = dlsym(library, name);
  dlclose(library);
  return found;
}

/// Into the global scope, where extension modules and the half with Python look for its functions. A program that was
/// itself loaded as a plug-in may have put it elsewhere.
void open_libpython(const LoadedPython& loaded, const PythonChoice& choice) {
  if (!loaded.file.empty()) {
    dlopen(loaded.file.c_str(), RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD);
  } else if (const std::string file = libpython_of(choice); !dlopen(file.c_str(), RTLD_NOW | RTLD_GLOBAL)) {
    fail(FPT_ERR_INTERPRETER, "the Python library could not be loaded: ", dlerror());
  }
}

void open(const std::string& python) {
  const LoadedPython loaded = loaded_python();
  PythonChoice choice;
  if (python_runs())
    choice.version = loaded.version;
  else
    choice = choose_python(python, loaded);
  const std::string file = python_half(choice.version, choice.executable);
  if (file.empty())
    fail(FPT_ERR_INTERPRETER, "the part of this library that runs Python ", choice.version,
         " is not installed: ", (own_folder() / concat("libftn_pytorch_python", choice.version, ".so")).string(),
         " is missing");
  open_libpython(loaded, choice);
  // for the life of the process: Python keeps functions of it
  if (!dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE))
    fail(FPT_ERR_INTERPRETER, "the part of this library that runs Python could not be loaded: ", dlerror());
  if (state != State::announced)
    fail(FPT_ERR_VERSION, file, " is not of the same build as this library: install both together");
  opened = {python, choice};
}

}  // namespace

bool announce_python_library(const char* version, int abi) noexcept {
  const bool fits = std::strcmp(version, FPT_VERSION) == 0 && abi == FPT_ABI;
  state = fits ? State::announced : State::misfit;
  return fits;
}

void open_python_library(const std::string& python) {
  if (is_open) return;
  const std::lock_guard<std::mutex> lock(opening);
  if (state != State::announced) open(python);  // a test may be linked with it
  is_open = true;
}

PythonChoice python_to_start(const std::string& python) {
  {
    const std::lock_guard<std::mutex> lock(opening);
    if (!opened.choice.executable.empty() && opened.argument == python) return opened.choice;
  }
  return choose_python(python, loaded_python());
}

std::string chosen_executable() {
  try {
    {
      const std::lock_guard<std::mutex> lock(opening);
      if (!opened.choice.executable.empty()) return opened.choice.executable;
    }
    return python_to_start({}).executable;
  } catch (const Error&) {
    return {};
  }
}

bool python_runs() noexcept {
  void* found = function_of_python("Py_IsInitialized");
  return found && reinterpret_cast<int (*)()>(found)() != 0;
}

LoadedPython loaded_python() {
  void* found = function_of_python("Py_GetVersion");
  if (!found) return {};
  const std::string_view text =
      reinterpret_cast<const char* (*)()>(found)();  // "3.11.7 (main, ...", also before a start
  return {resolved(object_file_of(found)).string(), std::string(text.substr(0, text.find('.', text.find('.') + 1)))};
}

}  // namespace fpt
