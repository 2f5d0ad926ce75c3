// SPDX-License-Identifier: MIT
#include "base/replaced_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/error.hpp"
#include "base/file_lock.hpp"
#include "base/paths.hpp"

namespace fpt {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail_to_write(const fs::path& file, const std::string& reason) {
  fail(FPT_ERR_FILE, file.string(), " cannot be written: ", reason);
}

[[noreturn]] void fail_by_errno(const fs::path& file) { fail_to_write_by_errno(file.string(), file.parent_path()); }

class Descriptor {
 public:
  explicit Descriptor(int number) noexcept : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  int get() const noexcept { return number_; }

 private:
  int number_;
};

void remove_parts(const fs::path& file) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(file.parent_path(), ignored))
    if (name_of_part(entry.path().filename().string()) == file.filename().string()) fs::remove(entry.path(), ignored);
}

/// Permissions of the file that is replaced, which its successor keeps; -1 where the umask decides.
int mode_of_replaced(const fs::path& file) {
  struct stat found;
  if (stat(file.c_str(), &found) != 0) {
    if (errno == ENOENT) return -1;
    fail_by_errno(file);
  }
  if (!S_ISREG(found.st_mode))
    fail_to_write(file, S_ISDIR(found.st_mode) ? "it is a folder; name a file in it" : "it is no regular file");
  if (file.extension() == ".py") fail_to_write(file, "there is a script; name another file");
  // a rename would replace it all the same
  if (access(file.c_str(), W_OK) != 0) fail_to_write(file, "there is a file that is protected against writing");
  return static_cast<int>(found.st_mode & 07777);
}

/// A rename is lost with the power otherwise. Some network file systems have no such thing.
void sync_folder(const fs::path& folder) noexcept {
  const Descriptor descriptor(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (descriptor.get() >= 0) (void)fsync(descriptor.get());
}

}  // namespace

/// As part_name of system/files.py: `.name.123.part`, where 123 is the process, a purpose (`.name.123~hook.part`), and
/// the ending once more (`.name.npz.123.part.npz`).
std::string_view name_of_part(std::string_view entry) noexcept {
  constexpr std::string_view part = ".part";
  const std::size_t end = entry.rfind(part);
  if (end == std::string_view::npos || entry.front() != '.') return {};
  const std::string_view ending = entry.substr(end + part.size());
  if (!ending.empty() && (ending.front() != '.' || ending.find('.', 1) != std::string_view::npos)) return {};
  entry = entry.substr(1, end - 1);
  const std::size_t dot = entry.rfind('.');
  if (dot == std::string_view::npos) return {};
  std::string_view process = entry.substr(dot + 1);
  process = process.substr(0, process.find('~'));
  const bool is_number = !process.empty() && process.find_first_not_of("0123456789") == std::string_view::npos;
  return is_number ? entry.substr(0, dot) : std::string_view();
}

void replace_file(const std::string& file, const std::function<void(std::ostream&)>& fill,
                  const std::function<void(const std::string&)>& check) {
  std::error_code failure;
  // links are followed: the file behind them is replaced, not the link
  const fs::path path = fs::weakly_canonical(absolute_path(file), failure);
  if (failure) fail_to_write(file, failure.message());
  const int mode = mode_of_replaced(path);
  const FileLock lock(path.parent_path() / ("." + path.filename().string() + ".lock"), path.string());
  if (lock.is_held()) remove_parts(path);
  const fs::path part = path.parent_path() / concat(".", path.filename().string(), ".", getpid(), ".part");
  const Descriptor descriptor(open(part.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (descriptor.get() < 0) fail_by_errno(path);
  try {
    if (mode >= 0 && fchmod(descriptor.get(), static_cast<mode_t>(mode)) != 0) fail_by_errno(path);
    std::ofstream stream(part, std::ios::binary);
    fill(stream);
    stream.close();
    if (!stream) fail_to_write(path, "it was taken in part only (is the disk full?)");
    if (fsync(descriptor.get()) != 0) fail_by_errno(path);
    if (check) check(part.string());
    if (rename(part.c_str(), path.c_str()) != 0) fail_by_errno(path);
  } catch (...) {
    unlink(part.c_str());
    throw;
  }
  sync_folder(path.parent_path());
}

}  // namespace fpt
