// SPDX-License-Identifier: MIT
#include "base/replaced_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/error.hpp"
#include "base/paths.hpp"

namespace fpt {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail_to_write(const fs::path& file, const std::string& reason) {
  fail(FPT_ERR_FILE, file.string(), " cannot be written: ", reason);
}

[[noreturn]] void fail_by_errno(const fs::path& file) {
  const int reason = errno;
  const fs::path folder = file.parent_path();
  std::error_code ignored;
  if (reason == ENOENT && !fs::is_directory(folder, ignored))
    fail_to_write(file, "there is no folder " + folder.string());
  fail_to_write(file, std::strerror(reason));
}

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

bool is_still_named(int descriptor, const fs::path& path) noexcept {
  struct stat held, named;
  return fstat(descriptor, &held) == 0 && stat(path.c_str(), &named) == 0 && held.st_dev == named.st_dev &&
         held.st_ino == named.st_ino;
}

/// The file `.name.lock`, locked by flock. As checkpoint/lock.py does it; a file system without flock has no lock here.
class Lock {
 public:
  explicit Lock(const fs::path& file) : path_(file.parent_path() / ("." + file.filename().string() + ".lock")) {
    do {
      descriptor_ = open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
      if (descriptor_ < 0) fail_by_errno(file);
      is_held_ = flock(descriptor_, LOCK_EX | LOCK_NB) == 0;
      if (!is_held_ && errno == EWOULDBLOCK) {
        close(descriptor_);
        fail(FPT_ERR_LOCKED, file.string(), " is being written by another process or thread (it holds ", path_.string(),
             "). Ranks need names of their own: write %r for the rank.");
      }
      if (!is_held_ || is_still_named(descriptor_, path_)) return;
      close(descriptor_);  // its owner removed it between the two calls
    } while (true);
  }
  /// First the name, then the lock: whoever locks this file now finds that it is no longer the one of that name.
  ~Lock() {
    if (is_still_named(descriptor_, path_)) unlink(path_.c_str());
    close(descriptor_);
  }
  Lock(const Lock&) = delete;
  bool is_held() const noexcept { return is_held_; }

 private:
  fs::path path_;
  int descriptor_ = -1;
  bool is_held_ = false;
};

/// `.name.123.part`, where 123 is the process.
bool is_part_of(const std::string& entry, const std::string& name) {
  const std::string before = "." + name + ".", after = ".part";
  if (entry.size() <= before.size() + after.size() || entry.compare(0, before.size(), before) != 0) return false;
  const std::string process = entry.substr(before.size(), entry.size() - before.size() - after.size());
  return entry.compare(entry.size() - after.size(), after.size(), after) == 0 &&
         process.find_first_not_of("0123456789") == std::string::npos;
}

void remove_parts(const fs::path& file) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(file.parent_path(), ignored))
    if (is_part_of(entry.path().filename().string(), file.filename().string())) fs::remove(entry.path(), ignored);
}

/// Permissions of the file that is replaced, which its successor keeps; -1 where the umask decides.
int mode_of_replaced(const fs::path& file) {
  struct stat found;
  if (stat(file.c_str(), &found) != 0) {
    if (errno == ENOENT) return -1;
    fail_by_errno(file);
  }
  if (!S_ISREG(found.st_mode)) fail_to_write(file, S_ISDIR(found.st_mode) ? "it is a folder" : "it is no regular file");
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

void replace_file(const std::string& file, const std::function<void(std::ostream&)>& fill) {
  std::error_code failure;
  // links are followed: the file behind them is replaced, not the link
  const fs::path path = fs::weakly_canonical(absolute_path(file), failure);
  if (failure) fail_to_write(file, failure.message());
  const int mode = mode_of_replaced(path);
  const Lock lock(path);
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
    if (fsync(descriptor.get()) != 0 || rename(part.c_str(), path.c_str()) != 0) fail_by_errno(path);
  } catch (...) {
    unlink(part.c_str());
    throw;
  }
  sync_folder(path.parent_path());
}

}  // namespace fpt
