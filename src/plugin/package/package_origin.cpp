// SPDX-License-Identifier: MIT
#include "plugin/package/package_origin.hpp"

#include <caffe2/core/common.h>
#include <caffe2/serialize/inline_container.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <torch/csrc/export/pt2_archive_constants.h>
#include <torch/version.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "base/release.hpp"
#include "plugin/failure.hpp"

namespace fpt::direct {
namespace {

using Facts = std::unordered_map<std::string, std::string>;

/// Instruction sets of this processor as Linux names them.
std::set<std::string> processor_flags() {
  std::ifstream file("/proc/cpuinfo");
  std::set<std::string> flags;
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("flags", 0) != 0 && line.rfind("Features", 0) != 0) continue;
    Plain<std::istringstream> words(line.substr(line.find(':') + 1));
    for (std::string word; words >> word;) flags.insert(word);
    break;
  }
  return flags;
}

/// Instruction sets that a package was compiled for and this processor lacks: it would end the program.
std::string missing_instructions(const std::string& compiled_for) {
  const std::set<std::string> flags = processor_flags();
  if (flags.empty()) return {};  // not known here
  Plain<std::istringstream> words(compiled_for);
  std::string missing;
  for (std::string word; words >> word;) {
    std::string flag;
    for (const char letter : word) flag += static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
    if (flag == "avx512") flag = "avx512f";
    if (flag == "neon") flag = "asimd";
    if (flag.rfind("invalid", 0) == 0 || flag == "sve256") continue;  // compiled for no vector unit in particular
    if (flags.count(flag) == 0) missing += (missing.empty() ? "" : ", ") + word;
  }
  return missing;
}

std::string recorded(const Facts& facts, const char* key) {
  const auto found = facts.find(key);
  return found == facts.end() ? std::string() : found->second;
}

/// Name of the model in a package that torch of this version can read: "model", or what the only one is called.
std::string model_of(const std::string& file) {
  namespace spec = torch::_export::archive_spec;
  caffe2::serialize::PyTorchStreamReader archive(file);
  if (const std::string record(spec::ARCHIVE_VERSION_PATH); archive.hasRecord(record)) {
    const auto [bytes, size] = archive.getRecord(record);
    const std::string version(static_cast<const char*>(bytes.get()), size);
    if (version != spec::ARCHIVE_VERSION_VALUE)
      fail(FPT_ERR_FORMAT, file, " has archive version ", version, ", and torch ", torch_here(), " reads ",
           spec::ARCHIVE_VERSION_VALUE, ": ", compile_again);
  }
  const std::string_view folder = spec::AOTINDUCTOR_DIR;
  std::set<std::string> names;
  for (const std::string& record : archive.getAllRecords())
    if (record.compare(0, folder.size(), folder) == 0)
      names.insert(record.substr(folder.size(), record.find('/', folder.size()) - folder.size()));
  if (names.count("model") != 0) return "model";
  if (names.size() == 1) return *names.begin();
  std::string listed;
  for (const std::string& name : names) listed += (listed.empty() ? "" : ", ") + name;
  fail(FPT_ERR_FORMAT, file, " holds several models (", listed, ") and none is called model: package one");
}

/// Code for another processor would end the program.
void check_processor(const std::string& file, const Facts& facts, bool on_host) {
  const std::string machine = recorded(facts, "AOTI_MACHINE");
  if (utsname here{}; uname(&here) == 0 && !machine.empty() && machine != here.machine)
    fail(FPT_ERR_DEVICE, file, " was compiled for ", machine, " processors, and this is ", here.machine, ": ",
         compile_again);
  const std::string missing = missing_instructions(on_host ? recorded(facts, "AOTI_CPU_ISA") : "");
  if (!missing.empty())
    fail(FPT_ERR_DEVICE, file, " was compiled for a processor with ", recorded(facts, "AOTI_CPU_ISA"),
         ", and this one has no ", missing, ": ", compile_again);
}

/// Code for another torch may end it. Our export writes down which it was compiled by; torch itself records none.
void check_torch(const std::string& file, const Facts& facts) {
  const std::string compiled_by = recorded(facts, "torch_version");
  if (!compiled_by.empty() && !fits_torch(compiled_by, torch_here()))
    fail(FPT_ERR_FORMAT, file, " was compiled by torch ", compiled_by, ", and this is torch ", torch_here(), ": ",
         compile_again);
}

/// What keeps torch from unpacking code to load it; empty where nothing is known.
std::string obstacle_to_unpacking(const std::string& file) {
  std::error_code failure;
  const char* const chosen = std::getenv("TMPDIR");
  const std::string folder = chosen && *chosen ? chosen : "/tmp";
  const uintmax_t size = std::filesystem::file_size(file, failure);
  struct statvfs about{};
  const char* why = nullptr;
  if (statvfs(folder.c_str(), &about) != 0 || access(folder.c_str(), W_OK | X_OK) != 0)
    why = std::strerror(errno);
  else if (about.f_flag & ST_NOEXEC)
    why = "no code may be loaded from there (noexec)";
  else if (!failure && uintmax_t{about.f_bavail} * about.f_frsize < size)
    why = "there is no room";
  return why ? concat(file, " has code, which is unpacked into ", folder, " to be loaded: ", why,
                      "; set TMPDIR to another folder")
             : std::string();
}

/// Throw the exception that is being handled, or what keeps from unpacking.
[[noreturn]] void rethrow_of_package(fpt_status status, const std::string& file, const std::string& context) {
  if (const std::string why = obstacle_to_unpacking(file); !why.empty()) fail(FPT_ERR_FILE, why);
  rethrow_as(status, context);
}

}  // namespace

std::string torch_here() {
  const auto& options = caffe2::GetBuildOptions();
  const auto found = options.find("TORCH_VERSION");
  return found == options.end() ? TORCH_VERSION : found->second;
}

PackageOrigin origin_of_package(const std::string& file, const std::optional<at::Device>& wanted,
                                const std::string& model) {
  PackageOrigin origin;
  try {
    origin.model = model.empty() ? model_of(file) : model;
    const Facts facts = torch::inductor::AOTIModelPackageLoader::load_metadata_from_package(file, origin.model);
    const std::string device = recorded(facts, "AOTI_DEVICE_KEY");
    if (!device.empty() && device != "cpu") origin.device = at::Device(device);
    if (wanted && wanted->type() != (origin.device ? origin.device->type() : at::kCPU))
      fail(FPT_ERR_DEVICE, file, " was compiled for the device ", device, ", but load was given device=\"",
           wanted->str(), "\"");
    if (wanted) origin.device = wanted;
    check_processor(file, facts, !origin.device);
    check_torch(file, facts);
    if (origin.device) at::empty_strided({1}, {1}, at::TensorOptions().device(*origin.device).dtype(at::kFloat));
  } catch (const Error&) {
    throw;
  } catch (...) {
    rethrow_of_package(origin.device ? FPT_ERR_DEVICE : FPT_ERR_FORMAT, file, file + " cannot be used");
  }
  return origin;
}

std::unique_ptr<PackageLoader> load_code(const std::string& file, const PackageOrigin& origin) {
  try {
    return recording::open_package(file, origin.model, origin.device ? origin.device->index() : c10::DeviceIndex(-1));
  } catch (...) {
    rethrow_of_package(FPT_ERR_FORMAT, file,
                       concat(file, " cannot be loaded by torch ", torch_here(),
                              " (was it compiled with another one? then ", compile_again, ")"));
  }
}

}  // namespace fpt::direct
