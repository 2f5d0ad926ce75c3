// SPDX-License-Identifier: MIT
#include "python/environment.hpp"

#include <patchlevel.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/error.hpp"
#include "base/paths.hpp"

namespace fs = std::filesystem;

namespace fpt {
namespace {

const std::string our_version = concat(PY_MAJOR_VERSION, ".", PY_MINOR_VERSION);

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

bool has_library_of(const fs::path& prefix, const std::string& version) {
  return is_there(prefix / "lib" / ("python" + version) / "os.py");
}

/// Version of the standard library under a prefix other than ours, for the error text.
std::string other_version(const fs::path& prefix) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(prefix / "lib", error)) {
    const std::string name = entry.path().filename().string();
    if (name.size() > 7 && name.rfind("python3.", 0) == 0 && is_there(entry.path() / "os.py")) return name.substr(6);
  }
  return {};
}

/// What pyvenv.cfg says (https://docs.python.org/3/library/venv.html).
struct VirtualEnvironment {
  bool found = false;
  fs::path prefix;          // its folder
  fs::path home;            // folder of the base Python's executable
  std::string version;      // "3.11.7" or empty
  bool sees_system = true;  // packages of the base Python
};

VirtualEnvironment read_pyvenv(const fs::path& executable) {
  VirtualEnvironment result;
  for (const fs::path& folder : {executable.parent_path(), executable.parent_path().parent_path()}) {
    std::ifstream file(folder / "pyvenv.cfg");
    if (!file) continue;
    result.found = true;
    result.prefix = folder;
    result.sees_system = false;
    for (std::string line; std::getline(file, line);) {
      std::istringstream words(line);
      std::string key, equals, value;
      if (!(words >> key >> equals) || equals != "=" || !std::getline(words >> std::ws, value)) continue;
      if (key == "home") result.home = value;
      if (key == "version" || key == "version_info") result.version = value;
      if (key == "include-system-site-packages") result.sees_system = value == "true";
    }
    break;
  }
  return result;
}

bool is_under(const fs::path& file, const fs::path& folder) {
  const std::string prefix = folder.string() == "/" ? "/" : folder.string() + "/";
  // a Python in /usr/local is not the one in /usr
  if (folder == "/usr" && file.string().rfind("/usr/local/", 0) == 0) return false;
  return file.string().rfind(prefix, 0) == 0;
}

[[noreturn]] void fail_version(const std::string& what, const std::string& version) {
  fail(FPT_ERR_VERSION, what, ", which is Python ", version, ", but this library was built for Python ", our_version,
       ": choose a Python ", our_version, ", or build the library again with -DPython_EXECUTABLE naming this one");
}

/// python3.13t: without running it, only the name of the file behind its links tells.
bool is_free_threaded(fs::path executable) {
  constexpr int most_links = 40;  // as the system follows
  std::error_code error;
  for (int i = 0; i < most_links; ++i) {
    const fs::path target = fs::read_symlink(executable, error);
    if (error) break;
    executable = executable.parent_path() / target;
  }
  return executable.filename() == "python" + our_version + "t";
}

/// Prefix of the Python installation behind an executable that has been found to fit.
fs::path require_fitting(const fs::path& executable, const std::string& what, const std::string& libpython) {
  std::error_code error;
  if (!fs::is_regular_file(executable, error) || access(executable.c_str(), X_OK) != 0)
    fail(FPT_ERR_INTERPRETER, what, ", but there is no Python that can be executed: give the path of a Python ",
         our_version, " executable");
  std::ifstream file(executable, std::ios::binary);
  char magic[2] = {};
  file.read(magic, 2);
  if (magic[0] == '#' && magic[1] == '!')
    fail(FPT_ERR_INTERPRETER, what, ", which is a script (a pyenv shim, perhaps) and not Python itself: ",
         "give what this Python prints for sys.executable");
  if (is_free_threaded(executable)) fail_free_threaded(what);

  const VirtualEnvironment environment = read_pyvenv(executable);
  if (!environment.version.empty() && environment.version != our_version &&
      environment.version.rfind(our_version + ".", 0) != 0)
    fail_version(what, environment.version);
  fs::path prefix = environment.found && !environment.home.empty() ? resolved(environment.home).parent_path()
                                                                   : resolved(executable).parent_path().parent_path();
  if (!has_library_of(prefix, our_version)) {
    // pyvenv.cfg may name a folder of links, such as /usr/local/bin: the executable itself knows better
    const fs::path real = resolved(executable).parent_path().parent_path();
    if (has_library_of(real, our_version)) {
      prefix = real;
    } else {
      const std::string version = other_version(prefix);
      if (!version.empty()) fail_version(what, version);
      fail(FPT_ERR_INTERPRETER, what, ", but the standard library of Python ", our_version, " is not in ",
           (prefix / "lib").string(), ": is the installation complete?");
    }
  }
  if (!libpython.empty() && !is_under(libpython, prefix))
    fail(FPT_ERR_VERSION, what, ", which belongs to the Python installed in ", prefix.string(),
         ", but this program uses the Python library ", libpython,
         ": choose a Python of that installation, or build the library again with -DPython_EXECUTABLE naming this one");
  return prefix;
}

void require_fitting_home(const fs::path& prefix) {
  const std::string home = variable("PYTHONHOME");
  if (home.empty()) return;
  const std::string first = home.substr(0, home.find(':'));
  if (!has_library_of(first, our_version) || resolved(first) != resolved(prefix))
    fail(FPT_ERR_PYTHONHOME, "the environment variable PYTHONHOME is \"", home, "\", which is not the home of Python ",
         our_version, " in ", prefix.string(), ": unset PYTHONHOME, it is not needed");
}

/// A relative path is relative to the working directory of now, which the program may change later.
std::string absolute(const std::string& path) {
  std::error_code error;
  const fs::path result = fs::absolute(path, error);
  return error ? path : result.string();
}

/// The folders that the path files (.pth) of a folder of packages name. Their lines of code are not run.
void add_path_files(std::vector<std::string>& folders, const fs::path& packages) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(packages, error)) {
    if (entry.path().extension() != ".pth") continue;
    std::ifstream file(entry.path());
    for (std::string line; std::getline(file, line);)
      if (!line.empty() && line.front() != '#' && fs::is_directory(packages / line, error))
        folders.push_back((packages / line).string());
  }
}

bool has_torch(const std::string& python) {
  for (const fs::path folder : package_folders(python))
    if (is_there(folder / "torch" / "version.py")) return true;
  return false;
}

/// The Python of the active environment if it fits and does not lack the torch of the build's, else the build's.
/// Returns its prefix. Activating an environment for other work is no order to this library, so it cannot be an error.
fs::path choose_without_order(PythonChoice& choice, const std::string& libpython) {
  const std::string build = FPT_BUILD_PYTHON;
  std::string misfit;
  for (const char* name : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    const std::string active = variable(name);
    if (active.empty()) continue;
    const std::string what = concat(name, " is \"", active, "\"");
    choice = {absolute(active + "/bin/python"), name, {}};
    try {
      fs::path prefix = require_fitting(choice.executable, what, libpython);
      if (has_torch(choice.executable) || !has_torch(build)) return prefix;
      misfit = what + ", which has no torch";
    } catch (const Error& error) {
      misfit = error.text();
    }
    break;
  }
  choice = {build, "the Python this library was built with", {}};
  const std::string what = concat("the Python this library was built with was \"", build, "\"");
  if (misfit.empty()) return require_fitting(build, "no Python was chosen, and " + what, libpython);
  choice.warning =
      concat("The active environment is not used: ", misfit, ". In its place runs ", build,
             ", the Python this library was built with. FTN_PYTORCH_PYTHON chooses one without this warning.");
  return require_fitting(build, concat(misfit, "; and ", what), libpython);
}

}  // namespace

void fail_free_threaded(const std::string& what) {
  fail(FPT_ERR_VERSION, what, ", which is a free-threaded Python: choose a Python ", our_version,
       " with the global interpreter lock");
}

PythonChoice choose_python(const std::string& python, const std::string& libpython) {
  const std::string named = variable("FTN_PYTORCH_PYTHON");
  PythonChoice choice;
  fs::path prefix;
  if (!python.empty()) {
    choice = {absolute(python), "argument of ftn_pytorch_init", {}};
    prefix = require_fitting(choice.executable, "ftn_pytorch_init was given the Python \"" + python + "\"", libpython);
  } else if (!named.empty()) {
    choice = {absolute(named), "FTN_PYTORCH_PYTHON", {}};
    prefix = require_fitting(choice.executable, "FTN_PYTORCH_PYTHON is \"" + named + "\"", libpython);
  } else {
    prefix = choose_without_order(choice, libpython);
  }
  require_fitting_home(prefix);
  return choice;
}

std::vector<std::string> package_folders(const std::string& python) {
  std::vector<std::string> folders;
  std::istringstream path(variable("PYTHONPATH"));
  for (std::string part; std::getline(path, part, ':');)
    if (!part.empty()) folders.push_back(part);

  const std::string version = "python" + our_version;
  const auto add = [&](const fs::path& folder) {
    folders.push_back(folder);
    add_path_files(folders, folder);
  };
  const auto add_prefix = [&](const fs::path& prefix) {
    for (const char* library : {"lib", "lib64"}) add(prefix / library / version / "site-packages");
  };
  const VirtualEnvironment environment = read_pyvenv(python);
  if (environment.found) add_prefix(environment.prefix);
  if (!environment.sees_system) return folders;
  const std::string home = variable("HOME");
  if (!home.empty()) add(fs::path(home) / ".local" / "lib" / version / "site-packages");
  const fs::path base = (environment.found ? resolved(environment.home) : resolved(python).parent_path()).parent_path();
  add_prefix(base);
  // Debian keeps packages of its own here
  add(fs::path("/usr/local/lib") / version / "dist-packages");
  add(base / "lib" / "python3" / "dist-packages");
  return folders;
}

std::string python_package_folder() {
  const fs::path folder = (own_folder() / FPT_PYTHON_PACKAGE_RELATIVE).lexically_normal();
  if (!is_there(folder / "ftn_pytorch" / "_embed.py")) return {};
  std::error_code error;
  // a link in a build tree; an installed one is below the prefix, which has been resolved
  return fs::is_symlink(folder, error) ? resolved(folder).string() : folder.string();
}

std::string program_path() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  return error ? "/proc/self/exe" : program.string();
}

}  // namespace fpt
