// SPDX-License-Identifier: MIT
#include "python/python_library.hpp"

#include <dlfcn.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <mutex>

#include "base/error.hpp"
#include "base/paths.hpp"
#include "ftn_pytorch.h"

namespace fs = std::filesystem;

namespace fpt {
namespace {

enum class State { closed, announced, misfit };
std::atomic<State> state{State::closed};

void open() {
  const fs::path file = own_folder() / FPT_PYTHON_HALF;
  std::error_code error;
  if (!fs::exists(file, error))
    fail(FPT_ERR_INTERPRETER, "the part of this library that runs Python is not installed: ", file.string(),
         " is missing");
  // for the life of the process: Python keeps functions of it
  if (!dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE))
    fail(FPT_ERR_INTERPRETER, "the part of this library that runs Python could not be loaded: ", dlerror());
  if (state != State::announced)
    fail(FPT_ERR_VERSION, file.string(), " is not of the same build as this library: install both together");
}

}  // namespace

bool announce_python_library(const char* version, int abi) noexcept {
  const bool fits = std::strcmp(version, FPT_VERSION) == 0 && abi == FPT_ABI;
  state = fits ? State::announced : State::misfit;
  return fits;
}

void open_python_library() {
  if (state == State::announced) return;
  static std::mutex& mutex = *new std::mutex;
  const std::lock_guard<std::mutex> lock(mutex);
  if (state != State::announced) open();
}

bool python_runs() noexcept {
  void* found = dlsym(RTLD_DEFAULT, "Py_IsInitialized");
  if (!found) {
    // a plug-in of the program may have brought one that others do not see
    void* library = dlopen(FPT_LIBPYTHON_NAME, RTLD_LAZY | RTLD_NOLOAD);
    if (!library) return false;
    found = dlsym(library, "Py_IsInitialized");
    dlclose(library);
  }
  return found && reinterpret_cast<int (*)()>(found)() != 0;
}

std::string expected_libpython() {
  std::error_code error;
  return fs::exists(FPT_LIBPYTHON, error) ? fs::canonical(FPT_LIBPYTHON, error).string() : std::string();
}

}  // namespace fpt
