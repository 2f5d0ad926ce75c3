// SPDX-License-Identifier: MIT
#include "base/file_lock.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <mutex>
#include <set>

#include "base/error.hpp"
#include "base/json_field.hpp"
#include "base/rank.hpp"

namespace fpt {
namespace {

constexpr int unsupported[] = {ENOSYS, ENOTSUP, EOPNOTSUPP, EINVAL, ENOLCK};

/// What forked children close. Nobody forks while its mutex is held.
struct Closed {
  std::mutex mutex;
  std::set<int> descriptors;

  Closed() {
    pthread_atfork([] { in_children().mutex.lock(); }, [] { in_children().mutex.unlock(); }, close_all);
  }
  static Closed& in_children() {
    static Closed& made = *new Closed;
    return made;
  }

 private:
  static void close_all() {
    for (const int each : in_children().descriptors) close(each);
    in_children().descriptors.clear();
    in_children().mutex.unlock();
  }
};

struct HostName {
  char text[256] = "unknown";
  HostName() noexcept {
    if (gethostname(text, sizeof text - 1) != 0) std::strcpy(text, "unknown");
  }
};

bool is_still_named(int descriptor, const std::filesystem::path& path) noexcept {
  struct stat held, named;
  return fstat(descriptor, &held) == 0 && stat(path.c_str(), &named) == 0 && held.st_dev == named.st_dev &&
         held.st_ino == named.st_ino;
}

std::string owner_of(int descriptor, const std::filesystem::path& path) {
  char bytes[4096];
  const ssize_t count = pread(descriptor, bytes, sizeof bytes, 0);
  const std::string_view line(bytes, count > 0 ? static_cast<std::size_t>(count) : 0);
  const auto told = [line](std::string_view key) { return std::string(json_field(line, key)); };
  const std::string pid = told("pid"), host = told("host"), since = told("since"), rank = told("rank"),
                    ranks = told("ranks");
  if (pid.empty() || host.empty() || since.empty() || rank.empty() || ranks.empty())
    return "another process (see " + path.string() + ")";
  const bool is_own = pid == std::to_string(getpid()) && host == HostName().text;
  return (is_own ? std::string("this process itself, in another place") : "process " + pid) + " on " + host +
         (ranks == "1" ? std::string() : ", rank " + rank + " of " + ranks) + ", since " + since;
}

void warn_of_no_lock(const std::filesystem::path& path, const char* reason) {
  static std::atomic_flag is_told = ATOMIC_FLAG_INIT;
  if (is_told.test_and_set()) return;
  warn(path.parent_path().string() + " is on a file system without flock (" + reason +
       "): nothing prevents two processes from writing one file at once");
}

}  // namespace

void fail_to_write_by_errno(const std::string& what, const std::filesystem::path& folder) {
  const int reason = errno;
  std::error_code ignored;
  if (reason == ENOENT && !std::filesystem::is_directory(folder, ignored))
    fail(FPT_ERR_FILE, what, " cannot be written: there is no folder ", folder.string());
  fail(FPT_ERR_FILE, what, " cannot be written: ", std::strerror(reason));
}

FileLock::FileLock(std::filesystem::path path, const std::string& what) : path_(std::move(path)), process_(getpid()) {
  do {
    std::unique_lock<std::mutex> no_fork(Closed::in_children().mutex);
    descriptor_ = open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (descriptor_ < 0) fail_to_write_by_errno(what, path_.parent_path());
    if (flock(descriptor_, LOCK_EX | LOCK_NB) == 0) {
      if (is_still_named(descriptor_, path_)) {
        Closed::in_children().descriptors.insert(descriptor_);
        sign();
        return;
      }
      close(descriptor_);  // its owner removed it between the two calls
      continue;
    }
    const int reason = errno;
    no_fork.unlock();
    const std::string owner = reason == EWOULDBLOCK ? owner_of(descriptor_, path_) : std::string();
    close(descriptor_);
    descriptor_ = -1;
    if (reason == EWOULDBLOCK)
      fail(FPT_ERR_LOCKED, what, " is being written by ", owner,
           ". Ranks need names of their own: write %r for the rank.");
    if (std::find(std::begin(unsupported), std::end(unsupported), reason) == std::end(unsupported)) {
      errno = reason;
      fail_to_write_by_errno(what, path_.parent_path());
    }
    unlink(path_.c_str());
    warn_of_no_lock(path_, std::strerror(reason));
    return;
  } while (true);
}

void FileLock::sign() const noexcept {
  // On a full disk it is held without the name of its owner.
  char since[64] = "", line[512];
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  localtime_r(&now, &parts);
  (void)std::strftime(since, sizeof since, "%Y-%m-%d %H:%M:%S", &parts);
  const int length =
      std::snprintf(line, sizeof line, R"({"pid": %d, "host": "%s", "since": "%s", "rank": %d, "ranks": %d})",
                    static_cast<int>(process_), HostName().text, since, rank().number, rank().count);
  const bool is_signed = ftruncate(descriptor_, 0) == 0 && length > 0 &&
                         pwrite(descriptor_, line, static_cast<std::size_t>(length), 0) == length;
  (void)is_signed;
}

bool FileLock::is_held() const noexcept {
  return descriptor_ >= 0 && process_ == getpid() && is_still_named(descriptor_, path_);
}

FileLock::~FileLock() {
  if (descriptor_ < 0 || process_ != getpid()) return;
  // First the name, then the lock: whoever locks this file now finds that it is no longer the one of that name.
  if (is_held()) unlink(path_.c_str());
  inherit(descriptor_, true);
  close(descriptor_);
}

void inherit(int descriptor, bool stays_open) {
  const std::lock_guard<std::mutex> no_fork(Closed::in_children().mutex);
  if (stays_open)
    Closed::in_children().descriptors.erase(descriptor);
  else
    Closed::in_children().descriptors.insert(descriptor);
}

}  // namespace fpt
