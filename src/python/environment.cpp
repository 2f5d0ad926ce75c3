// SPDX-License-Identifier: MIT
#include "python/environment.hpp"

#include <sys/utsname.h>
#include <unistd.h>

#include <climits>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/error.hpp"
#include "base/paths.hpp"
#include "base/switches.hpp"
#include "ftn_pytorch.h"
#include "python/own_parts.hpp"

namespace fs = std::filesystem;

namespace fpt {
namespace {

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
      Plain<std::istringstream> words(line);
      std::string key, equals, value;
      if (!(words >> key >> equals) || equals != "=" || !std::getline(words >> std::ws, value)) continue;
      if (key == "home") result.home = value;
      if (key == "version" || key == "version_info") result.version = minor_version(value);
      if (key == "include-system-site-packages") result.sees_system = value[0] == 't' || value[0] == 'T';
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
std::string version_of(const fs::path& executable, const VirtualEnvironment& environment) {
  if (!environment.version.empty()) return environment.version;
  const fs::path real = resolved(executable);
  const std::string version = version_in_name(real);
  return version.empty() ? version_in(real.parent_path().parent_path()) : version;
}

/// Empty for what is no link. One question to the file system; std::filesystem asks two.
std::string link_target(const fs::path& file) {
  char target[PATH_MAX];
  const ssize_t length = readlink(file.c_str(), target, sizeof target);
  return length > 0 ? std::string(target, static_cast<std::size_t>(length)) : std::string();
}

/// python3.13t: without running it, only the name of the file behind its links tells.
bool is_free_threaded(fs::path executable, const std::string& version) {
  constexpr int most_links = 40;  // as the system follows
  for (int i = 0; i < most_links; ++i) {
    const std::string target = link_target(executable);
    if (target.empty()) break;
    executable = executable.parent_path() / target;
  }
  return executable.filename() == "python" + version + "t";
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
fs::path prefix_of(const fs::path& executable, const VirtualEnvironment& environment, const std::string& version,
                   const std::string& what) {
  fs::path named;
  if (!environment.home.empty()) {
    named = resolved(environment.home).parent_path();
    if (has_library_of(named, version)) return named;
  }
  // pyvenv.cfg may name a folder of links, such as /usr/local/bin: the executable itself knows better
  const fs::path real = resolved(executable).parent_path().parent_path();
  if (has_library_of(real, version)) return real;
  fail(FPT_ERR_INTERPRETER, what, ", but the standard library of Python ", version, " is not in ",
       ((named.empty() ? real : named) / "lib").string(), ": is the installation complete?");
}

/// Where the libpython of an installation may be.
std::vector<fs::path> libraries_of(const fs::path& prefix, const std::string& version) {
  const std::string name = "libpython" + version + ".so.1.0";
  utsname machine{};
  uname(&machine);
  return {prefix / "lib" / name, prefix / "lib64" / name,
          prefix / "lib" / concat(machine.machine, "-linux-gnu") / name};
}

bool is_libpython_of(const std::string& file, const PythonChoice& choice) {
  if (is_under(file, choice.prefix)) return true;
  for (const fs::path& own : libraries_of(choice.prefix, choice.version))
    if (resolved(own) == file) return true;
  return false;
}

/// Fills in version and prefix of an executable that has been found to fit.
void require_fitting(PythonChoice& choice, const std::string& what, const LoadedPython& loaded) {
  require_program(choice.executable, what);
  const VirtualEnvironment environment = read_pyvenv(choice.executable);
  choice.version = version_of(choice.executable, environment);
  if (is_free_threaded(choice.executable, choice.version)) fail_free_threaded(what);
  const bool is_known = choice.version == FPT_BUILD_PYTHON_VERSION;
  if (!choice.version.empty() && !is_known && python_half(choice.version, choice.executable).empty())
    fail(FPT_ERR_VERSION, what, ", which is Python ", choice.version, ", but this library was built for Python ",
         versions_here(), ": choose a Python ", versions_here(), ", or ",
         is_of_wheel() ? concat("install ftn-pytorch ", FPT_VERSION, " for this one")
                       : "build the library again with -DPython_EXECUTABLE naming this one");
  choice.prefix = prefix_of(choice.executable, environment, choice.version, what).string();
  if (!loaded.file.empty() && (loaded.version != choice.version || !is_libpython_of(loaded.file, choice)))
    fail(FPT_ERR_VERSION, what, ", which belongs to the Python ", choice.version, " installed in ", choice.prefix,
         ", but this program uses the Python library ", loaded.file, " of Python ", loaded.version,
         ": choose a Python of that installation");
  require_package(choice.executable, what);
}

void require_fitting_home(const PythonChoice& choice) {
  const std::string home(variable_value("PYTHONHOME"));
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
    for (std::string line; std::getline(file, line);) {
      line.erase(line.find_last_not_of(" \t\r") + 1);
      if (!line.empty() && line.front() != '#' && fs::is_directory(packages / line, error))
        folders.push_back((packages / line).string());
    }
  }
}

bool has_torch(const std::string& python) {
  for (const fs::path folder : package_folders(python))
    if (is_there(folder / "torch" / "version.py")) return true;
  return false;
}

/// The Python of the active environment if it fits and does not lack the torch of the default one, else the default
/// one. Activating an environment for other work is no order to this library, so it cannot be an error.
PythonChoice choose_without_order(const LoadedPython& loaded) {
  const std::string ours = default_python();
  std::string misfit;
  for (const char* name : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    const std::string active(variable_value(name));
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
  const std::string what = misfit.empty() ? "no Python was chosen" : misfit;
  if (ours.empty())
    fail(FPT_ERR_INTERPRETER, what, ", and no environment was found for the library in ", own_folder().string(),
         ": name a Python in FTN_PYTORCH_PYTHON");
  PythonChoice choice{ours, {}, {}, default_python_reason(), {}};
  require_fitting(choice,
                  concat(what, misfit.empty() ? ", and " : "; and ", default_python_reason(), " is \"", ours, "\""),
                  loaded);
  if (!misfit.empty())
    choice.warning = concat("The active environment is not used: ", misfit, ". In its place runs ", ours, ", ",
                            default_python_reason(), ". FTN_PYTORCH_PYTHON chooses one without this warning.");
  return choice;
}

}  // namespace

bool is_program(const fs::path& file) {
  std::error_code error;
  if (!fs::is_regular_file(file, error) || access(file.c_str(), X_OK) != 0) return false;
  std::ifstream content(file, std::ios::binary);
  char magic[2] = {};
  content.read(magic, 2);
  return magic[0] != '#' || magic[1] != '!';
}

void fail_free_threaded(const std::string& what) {
  fail(FPT_ERR_VERSION, what, ", which is a free-threaded Python: choose a Python ", versions_here(),
       " with the global interpreter lock");
}

PythonChoice choose_python(const std::string& python, const LoadedPython& loaded) {
  const std::string named(variable_value("FTN_PYTORCH_PYTHON"));
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
  Plain<std::istringstream> path(std::string(variable_value("PYTHONPATH")));
  for (std::string part; std::getline(path, part, ':');)
    if (!part.empty()) folders.push_back(part);

  const VirtualEnvironment environment = read_pyvenv(python);
  const std::string version = "python" + version_of(python, environment);
  const auto add = [&](const fs::path& folder) {
    folders.push_back(folder);
    add_path_files(folders, folder);
  };
  const auto add_prefix = [&](const fs::path& prefix) {
    for (const char* library : library_folders) add(prefix / library / version / "site-packages");
  };
  if (environment.found) add_prefix(environment.prefix);
  if (!environment.sees_system) return folders;
  const std::string home(variable_value("HOME")), user(variable_value("PYTHONUSERBASE"));
  if (!user.empty() || !home.empty())
    add((user.empty() ? fs::path(home) / ".local" : fs::path(user)) / "lib" / version / "site-packages");
  const fs::path base = (environment.found ? resolved(environment.home) : resolved(python).parent_path()).parent_path();
  add_prefix(base);
  // what an administrator has installed: distributions of the Red Hat family, and Debian
  if (base == "/usr") add_prefix("/usr/local");
  add(fs::path("/usr/local/lib") / version / "dist-packages");
  // Debian keeps packages of its own here
  add(base / "lib" / "python3" / "dist-packages");
  return folders;
}

std::string libpython_of(const PythonChoice& choice) {
  for (const fs::path& file : libraries_of(choice.prefix, choice.version))
    if (is_there(file)) return file.string();
  const std::string name = "libpython" + choice.version;
  fail(FPT_ERR_INTERPRETER, choice.executable, " is a Python without a shared libpython (no ", name, ".so.1.0 in ",
       choice.prefix,
       "/lib), which cannot be embedded: use a Python that was configured with --enable-shared, such as "
       "that of conda, of a distribution (Debian, Ubuntu: ",
       name, "), or PYTHON_CONFIGURE_OPTS=--enable-shared pyenv install");
}

std::string program_path() {
  const std::string program = link_target("/proc/self/exe");
  return program.empty() ? "/proc/self/exe" : program;
}

}  // namespace fpt
