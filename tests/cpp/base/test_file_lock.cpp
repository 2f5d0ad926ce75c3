// SPDX-License-Identifier: MIT
/// The lock of files and folders; test_replaced_file.cpp and plugin/recording/test_checkpoint_folder.cpp have it in
/// use.
#include <dlfcn.h>
#include <sys/wait.h>

#include <cerrno>
#include <memory>

#include "base/file_lock.hpp"
#include "base/rank.hpp"
#include "support.hpp"

namespace {

int failure_of_flock = 0;
std::vector<std::string> lock_warnings;

}  // namespace

/// In place of libc's, which is called unless the test makes it fail.
extern "C" int flock(int descriptor, int operation) {
  if (failure_of_flock != 0) return errno = failure_of_flock, -1;
  static const auto real = reinterpret_cast<int (*)(int, int)>(dlsym(RTLD_NEXT, "flock"));
  return real(descriptor, operation);
}

namespace fpt {
namespace {

namespace fs = std::filesystem;
using test::outcome_of;

class FileLockTest : public testing::Test {
 protected:
  ~FileLockTest() override { failure_of_flock = 0; }
  test::Folder folder;
  fs::path path = folder.path() / ".model.lock";

  test::Outcome take() const {
    return outcome_of([&] { const FileLock lock(path, "model"); });
  }
  std::string content() const {
    std::ifstream stream(path);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
};

TEST_F(FileLockTest, NamesItsOwnerInTheWayOfPython) {
  const test::Variable number("OMPI_COMM_WORLD_RANK", "3"), size("OMPI_COMM_WORLD_SIZE", "4");
  const FileLock lock(path, "model");
  EXPECT_TRUE(lock.is_held());
  EXPECT_EQ(content().rfind(concat("{\"pid\": ", getpid(), ", \"host\": \""), 0), 0u) << content();
  EXPECT_NE(content().find("\", \"rank\": 3, \"ranks\": 4}"), std::string::npos) << content();
  EXPECT_FAILS(take(), FPT_ERR_LOCKED, "model is being written by this process itself, in another place on ");
  EXPECT_FAILS(take(), FPT_ERR_LOCKED, ", rank 3 of 4, since 2");
}

TEST_F(FileLockTest, AnOwnerIsReadFromWhatIsThere) {
  const FileLock lock(path, "model");
  std::ofstream(path) << R"({"pid": 12, "host": "node7", "since": "2030-01-01 10:00:00", "rank": 0, "ranks": 1})";
  EXPECT_FAILS(take(), FPT_ERR_LOCKED, "written by process 12 on node7, since 2030-01-01 10:00:00. Ranks need names");
  for (const char* text : {"", "{", R"({"pid": 12)", R"({"pid": 12, "host": "x)", "[1, 2]"}) {
    std::ofstream(path) << text;
    EXPECT_FAILS(take(), FPT_ERR_LOCKED, "written by another process (see " + path.string() + ")");
  }
}

TEST_F(FileLockTest, EndsWithTheObject) {
  EXPECT_OK(take());
  EXPECT_FALSE(fs::exists(path));
  EXPECT_OK(take());
}

TEST_F(FileLockTest, AForkedChildClosesItAtOnce) {
  const auto is_open_in_child = [&] {
    const pid_t child = fork();
    if (child == 0) _exit(test::has_open(path));
    int status = -1;
    waitpid(child, &status, 0);
    return status != 0;
  };
  {
    const FileLock lock(path, "model");
    EXPECT_TRUE(test::has_open(path));
    EXPECT_FALSE(is_open_in_child()) << "which would keep it when this process is killed";
    EXPECT_TRUE(lock.is_held());
    EXPECT_FAILS(take(), FPT_ERR_LOCKED, "this process itself");
  }
  const std::ofstream other(path);  // perhaps with the same descriptor
  EXPECT_TRUE(is_open_in_child());
}

TEST_F(FileLockTest, OfAReplacedFolderIsNotHeldAndLeavesTheNewOneAlone) {
  auto lock = std::make_unique<FileLock>(path, "model");
  fs::rename(path, folder.path() / "moved");
  EXPECT_FALSE(lock->is_held());
  const FileLock other(path, "model");
  lock.reset();
  EXPECT_TRUE(other.is_held());
}

TEST_F(FileLockTest, PlacesWhereItCannotBeMadeAreTold) {
  EXPECT_FAILS(outcome_of([&] { const FileLock lock(folder.path() / "none" / ".lock", "model"); }), FPT_ERR_FILE,
               "model cannot be written: there is no folder");
  fs::create_directory(path);
  EXPECT_FAILS(take(), FPT_ERR_FILE, "model cannot be written: Is a directory");
}

TEST_F(FileLockTest, AFileSystemWithoutLocksIsToldOnce) {
  lock_warnings.clear();
  set_warning_handler(
      [](const char* text, int64_t length) { lock_warnings.emplace_back(text, static_cast<std::size_t>(length)); });
  failure_of_flock = ENOTSUP;
  for (int i = 0; i < 2; ++i) {
    const FileLock lock(path, "model");
    EXPECT_FALSE(lock.is_held());
    EXPECT_FALSE(fs::exists(path));
  }
  set_warning_handler(nullptr);
  ASSERT_EQ(lock_warnings.size(), 1u);
  EXPECT_NE(lock_warnings[0].find("is on a file system without flock (Operation not supported): nothing prevents"),
            std::string::npos);
  failure_of_flock = EIO;
  EXPECT_FAILS(take(), FPT_ERR_FILE, "model cannot be written: Input/output error");
}

}  // namespace
}  // namespace fpt
