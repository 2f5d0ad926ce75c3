// SPDX-License-Identifier: MIT
#include "python/environment.hpp"

#include <sys/utsname.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/error.hpp"
#include "base/paths.hpp"
#include "ftn_pytorch.h"

namespace fs = std::filesystem;

namespace fpt {
namespace {

// Empty in a wheel, which lies in the environment whose Python it takes, and is found there by import.
constexpr bool is_wheel = sizeof(FPT_BUILD_PYTHON) == 1;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

// sys.platlibdir: distributions of the Red Hat family keep the standard library in the second
constexpr const char* library_folders[] = {"lib", "lib64"};

bool has_library_of(const fs::path& prefix, const std::string& version) {
  for (const char* library : library_folders)
    if (is_there(prefix / library / ("python" + version) / "os.py")) return true;
  return false;
}

/// "3.11" of "3.11.7" or of "3.11t"; empty for anything else.
std::string minor_version(const std::string& text) {
  if (text.rfind("3.", 0) != 0) return {};
  const std::size_t end = text.find_first_not_of("0123456789", 2);
  const std::string version = text.substr(0, end);
  return version.size() > 2 ? version : std::string();
}

/// What a name such as python3.11 says.
std::string version_in_name(const fs::path& file) {
  const std::string name = file.filename().string(), start = "python";
  return name.rfind(start, 0) == 0 ? minor_version(name.substr(start.size())) : std::string();
}

/// Version of the standard library under a prefix.
std::string version_in(const fs::path& prefix) {
  std::error_code error;
  for (const char* library : library_folders)
    for (const auto& entry : fs::directory_iterator(prefix / library, error))
      if (const std::string version = version_in_name(entry.path());
          !version.empty() && is_there(entry.path() / "os.py"))
        return version;
  return {};
}

/// What pyvenv.cfg says (https://docs.python.org/3/library/venv.html).
struct VirtualEnvironment {
  bool found = false;
  fs::path prefix;          // its folder
  fs::path home;            // folder of the base Python's executable
  std::string version;      // "3.11" or empty
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
      if (key == "version" || key == "version_info") result.version = minor_version(value);
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

/// Which Python an executable is, as far as files tell; empty if they do not.
std::string version_of(const fs::path& executable) {
  const VirtualEnvironment environment = read_pyvenv(executable);
  if (!environment.version.empty()) return environment.version;
  const fs::path real = resolved(executable);
  const std::string version = version_in_name(real);
  return version.empty() ? version_in(real.parent_path().parent_path()) : version;
}

/// The Pythons that this library has a half for beside it, for the text of a failure.
std::string versions_here() {
  std::string text = FPT_BUILD_PYTHON_VERSION;
  const std::string start = "libftn_pytorch_";
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(own_folder(), error)) {
    const std::string name = entry.path().filename().string();
    const std::string version = name.rfind(start, 0) == 0 ? version_in_name(name.substr(start.size())) : std::string();
    if (!version.empty() && version != FPT_BUILD_PYTHON_VERSION) text += " and " + version;
  }
  return text;
}

/// python3.13t: without running it, only the name of the file behind its links tells.
bool is_free_threaded(fs::path executable, const std::string& version) {
  constexpr int most_links = 40;  // as the system follows
  std::error_code error;
  for (int i = 0; i < most_links; ++i) {
    const fs::path target = fs::read_symlink(executable, error);
    if (error) break;
    executable = executable.parent_path() / target;
  }
  return executable.filename() == "python" + version + "t";
}

/// A file that can be executed and is no script.
bool is_program(const fs::path& file) {
  std::error_code error;
  if (!fs::is_regular_file(file, error) || access(file.c_str(), X_OK) != 0) return false;
  std::ifstream content(file, std::ios::binary);
  char magic[2] = {};
  content.read(magic, 2);
  return magic[0] != '#' || magic[1] != '!';
}

void require_program(const fs::path& executable, const std::string& what) {
  if (is_program(executable)) return;
  std::error_code error;
  if (!fs::is_regular_file(executable, error) || access(executable.c_str(), X_OK) != 0)
    fail(FPT_ERR_INTERPRETER, what, ", but there is no Python that can be executed: give the path of a Python ",
         versions_here(), " executable");
  fail(FPT_ERR_INTERPRETER, what, ", which is a script (a pyenv shim, perhaps) and not Python itself: ",
       "give what this Python prints for sys.executable");
}

/// Prefix of the installation behind an executable.
fs::path prefix_of(const fs::path& executable, const std::string& version, const std::string& what) {
  const VirtualEnvironment environment = read_pyvenv(executable);
  // pyvenv.cfg may name a folder of links, such as /usr/local/bin: the executable itself knows better
  const fs::path real = resolved(executable).parent_path().parent_path();
  const fs::path named = environment.home.empty() ? real : resolved(environment.home).parent_path();
  for (const fs::path& prefix : {named, real})
    if (has_library_of(prefix, version)) return prefix;
  fail(FPT_ERR_INTERPRETER, what, ", but the standard library of Python ", version, " is not in ",
       (named / "lib").string(), ": is the installation complete?");
}

/// Fills in version and prefix of an executable that has been found to fit.
void require_fitting(PythonChoice& choice, const std::string& what, const LoadedPython& loaded) {
  require_program(choice.executable, what);
  choice.version = version_of(choice.executable);
  if (is_free_threaded(choice.executable, choice.version)) fail_free_threaded(what);
  const bool is_known = choice.version == FPT_BUILD_PYTHON_VERSION;
  if (!choice.version.empty() && !is_known && python_half(choice.version, choice.executable).empty())
    fail(FPT_ERR_VERSION, what, ", which is Python ", choice.version, ", but this library was built for Python ",
         versions_here(), ": choose a Python ", versions_here(), ", or ",
         is_wheel ? concat("install ftn-pytorch ", FPT_VERSION, " for this one")
                  : "build the library again with -DPython_EXECUTABLE naming this one");
  choice.prefix = prefix_of(choice.executable, choice.version, what).string();
  if (!loaded.file.empty() && (loaded.version != choice.version || !is_under(loaded.file, choice.prefix)))
    fail(FPT_ERR_VERSION, what, ", which belongs to the Python ", choice.version, " installed in ", choice.prefix,
         ", but this program uses the Python library ", loaded.file, " of Python ", loaded.version,
         ": choose a Python of that installation");
  if (is_wheel && python_package_folder(choice.executable).empty())
    fail(FPT_ERR_IMPORT, what, ", which has no ftn_pytorch: install it there (", choice.executable,
         " -m pip install ftn-pytorch==", FPT_VERSION, ")");
}

void require_fitting_home(const PythonChoice& choice) {
  const std::string home = variable("PYTHONHOME");
  if (home.empty()) return;
  const std::string first = home.substr(0, home.find(':'));
  if (!has_library_of(first, choice.version) || resolved(first) != resolved(choice.prefix))
    fail(FPT_ERR_PYTHONHOME, "the environment variable PYTHONHOME is \"", home, "\", which is not the home of Python ",
         choice.version, " in ", choice.prefix, ": unset PYTHONHOME, it is not needed");
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

/// The Python that programs take if no variable names one: that of the build, or that of the environment in which this
/// library lies (<prefix>/lib/python3.N/site-packages/ftn_pytorch/lib); for packages of a user or of an administrator,
/// which have no Python in their prefix, the first one of this version in PATH. Empty if there is none.
std::string default_python() {
  if (!is_wheel) return FPT_BUILD_PYTHON;
  const std::string name = concat("python", FPT_BUILD_PYTHON_VERSION);
  fs::path folder = own_folder();
  while (folder.has_relative_path() && folder.filename().string().rfind("python3", 0) != 0)
    folder = folder.parent_path();
  const fs::path own = folder.parent_path().parent_path() / "bin" / name;
  if (is_program(own)) return own.string();
  std::istringstream path(variable("PATH"));
  for (std::string part; std::getline(path, part, ':');)
    if (!part.empty() && is_program(fs::path(part) / name)) return absolute((fs::path(part) / name).string());
  return {};
}

constexpr const char* default_reason =
    is_wheel ? "the environment in which this library lies" : "the Python this library was built with";

/// The Python of the active environment if it fits and does not lack the torch of the default one, else the default
/// one. Activating an environment for other work is no order to this library, so it cannot be an error.
PythonChoice choose_without_order(const LoadedPython& loaded) {
  const std::string ours = default_python();
  std::string misfit;
  for (const char* name : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    const std::string active = variable(name);
    if (active.empty()) continue;
    const std::string what = concat(name, " is \"", active, "\"");
    PythonChoice choice{absolute(active + "/bin/python"), {}, {}, name, {}};
    try {
      require_fitting(choice, what, loaded);
      if (has_torch(choice.executable) || !has_torch(ours)) return choice;
      misfit = what + ", which has no torch";
    } catch (const Error& error) {
      misfit = error.text();
    }
    break;
  }
  if (ours.empty())
    fail(FPT_ERR_INTERPRETER, misfit.empty() ? "no Python was chosen" : misfit, ", and no python",
         FPT_BUILD_PYTHON_VERSION, " was found for the library in ", own_folder().string(),
         ": name one in FTN_PYTORCH_PYTHON");
  PythonChoice choice{ours, {}, {}, default_reason, {}};
  const std::string what = is_wheel ? concat("that of this library is \"", ours, "\"")
                                    : concat("the Python this library was built with was \"", ours, "\"");
  require_fitting(choice, (misfit.empty() ? "no Python was chosen, and " : misfit + "; and ") + what, loaded);
  if (!misfit.empty())
    choice.warning = concat("The active environment is not used: ", misfit, ". In its place runs ", ours, ", ",
                            default_reason, ". FTN_PYTORCH_PYTHON chooses one without this warning.");
  return choice;
}

}  // namespace

void fail_free_threaded(const std::string& what) {
  fail(FPT_ERR_VERSION, what, ", which is a free-threaded Python: choose a Python ", versions_here(),
       " with the global interpreter lock");
}

PythonChoice choose_python(const std::string& python, const LoadedPython& loaded) {
  const std::string named = variable("FTN_PYTORCH_PYTHON");
  PythonChoice choice;
  if (!python.empty()) {
    choice = {absolute(python), {}, {}, "argument of ftn_pytorch_init", {}};
    require_fitting(choice, "ftn_pytorch_init was given the Python \"" + python + "\"", loaded);
  } else if (!named.empty()) {
    choice = {absolute(named), {}, {}, "FTN_PYTORCH_PYTHON", {}};
    require_fitting(choice, "FTN_PYTORCH_PYTHON is \"" + named + "\"", loaded);
  } else {
    choice = choose_without_order(loaded);
  }
  require_fitting_home(choice);
  return choice;
}

std::vector<std::string> package_folders(const std::string& python) {
  std::vector<std::string> folders;
  std::istringstream path(variable("PYTHONPATH"));
  for (std::string part; std::getline(path, part, ':');)
    if (!part.empty()) folders.push_back(part);

  const std::string version = "python" + version_of(python);
  const auto add = [&](const fs::path& folder) {
    folders.push_back(folder);
    add_path_files(folders, folder);
  };
  const auto add_prefix = [&](const fs::path& prefix) {
    for (const char* library : library_folders) add(prefix / library / version / "site-packages");
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

std::string python_package_folder(const std::string& python) {
  if (is_wheel) {
    if (python.empty()) return {};
    for (const fs::path folder : package_folders(python))
      if (is_there(folder / "ftn_pytorch" / "_embed.py")) return folder.string();
    return {};
  }
  const fs::path folder = (own_folder() / FPT_PYTHON_PACKAGE_RELATIVE).lexically_normal();
  if (!is_there(folder / "ftn_pytorch" / "_embed.py")) return {};
  std::error_code error;
  // a link in a build tree; an installed one is below the prefix, which has been resolved
  return fs::is_symlink(folder, error) ? resolved(folder).string() : folder.string();
}

std::vector<std::string> own_folders(const std::string& python) {
  std::vector<std::string> folders = {own_folder().string()};
  const std::string packages = is_wheel ? python_package_folder(python) : std::string();
  if (!packages.empty()) folders.push_back((fs::path(packages) / "ftn_pytorch" / "lib").string());
  return folders;
}

std::string python_half(const std::string& version, const std::string& python) {
  for (const fs::path folder : own_folders(python)) {
    const fs::path file = folder / ("libftn_pytorch_python" + version + ".so");
    if (is_there(file)) return file.string();
  }
  return {};
}

std::string libpython_of(const PythonChoice& choice) {
  const std::string name = "libpython" + choice.version + ".so.1.0";
  utsname machine{};
  uname(&machine);
  const fs::path of_debian = fs::path("lib") / concat(machine.machine, "-linux-gnu");
  for (const fs::path& folder : {fs::path("lib"), fs::path("lib64"), of_debian})
    if (const fs::path file = choice.prefix / folder / name; is_there(file)) return resolved(file).string();
  fail(FPT_ERR_INTERPRETER, choice.executable, " is a Python without a shared libpython (no ", name, " in ",
       choice.prefix,
       "/lib), which cannot be embedded: use a Python that was configured with --enable-shared, such as "
       "that of conda, of a distribution (Debian, Ubuntu: libpython",
       choice.version, "), or PYTHON_CONFIGURE_OPTS=--enable-shared pyenv install");
}

bool is_of_wheel() noexcept { return is_wheel; }

std::string program_path() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  return error ? "/proc/self/exe" : program.string();
}

}  // namespace fpt
