// SPDX-License-Identifier: MIT
#include <dlfcn.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <csignal>
#include <set>
#include <sstream>

#include "base/replaced_file.hpp"
#include "support.hpp"

namespace {

// What the test wants to know of a sync, and what it lets it answer.
bool (*on_sync)(int descriptor) = nullptr;

}  // namespace

/// In place of libc's, which is called unless the test makes it fail.
extern "C" int fsync(int descriptor) {
  if (on_sync && !on_sync(descriptor)) return errno = EIO, -1;
  static const auto real = reinterpret_cast<int (*)(int)>(dlsym(RTLD_NEXT, "fsync"));
  return real(descriptor);
}

namespace fpt {
namespace {

namespace fs = std::filesystem;

std::string content_of(const fs::path& file) {
  std::ifstream stream(file);
  std::stringstream content;
  content << stream.rdbuf();
  return content.str();
}

class ReplacedFileTest : public testing::Test {
 protected:
  test::Folder folder;
  fs::path file = folder.path() / "model.pt";

  test::Outcome write(const std::string& content) const {
    return test::outcome_of([&] { replace_file(file.string(), [&](std::ostream& stream) { stream << content; }); });
  }
  std::set<std::string> names() const {
    std::set<std::string> found;
    for (const auto& entry : fs::directory_iterator(folder.path())) found.insert(entry.path().filename().string());
    return found;
  }
};

TEST_F(ReplacedFileTest, OneAfterTheOtherLeavesOneFile) {
  EXPECT_OK(write("first"));
  EXPECT_OK(write("second"));
  EXPECT_EQ(content_of(file), "second");
  EXPECT_EQ(names(), std::set<std::string>{"model.pt"});
}

TEST_F(ReplacedFileTest, TheOldOneIsThereUntilTheNewOneIsComplete) {
  EXPECT_OK(write("first"));
  replace_file(file.string(), [&](std::ostream& stream) {
    stream << "second" << std::flush;
    EXPECT_EQ(content_of(file), "first");
  });
  EXPECT_EQ(content_of(file), "second");
}

TEST_F(ReplacedFileTest, AKillWhileItIsWrittenLeavesTheOldOneAndTheNextWriterClearsUp) {
  EXPECT_OK(write("first"));
  const pid_t child = fork();
  if (child == 0) {
    replace_file(file.string(), [](std::ostream& stream) {
      stream << "second" << std::flush;
      raise(SIGKILL);
    });
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(content_of(file), "first");
  EXPECT_GT(names().size(), 1u) << "nothing was left: the test shows nothing";
  folder.write(".model.pt.notes.part", "somebody else's");
  EXPECT_OK(write("third"));
  EXPECT_EQ(content_of(file), "third");
  EXPECT_EQ(names(), (std::set<std::string>{"model.pt", ".model.pt.notes.part"}));
}

TEST_F(ReplacedFileTest, AFailureLeavesTheOldOne) {
  EXPECT_OK(write("first"));
  EXPECT_FAILS(test::outcome_of([&] {
                 replace_file(file.string(), [](std::ostream& stream) {
                   stream << "second";
                   fail(FPT_ERR_MEMORY, "on purpose");
                 });
               }),
               FPT_ERR_MEMORY, "on purpose");
  EXPECT_EQ(content_of(file), "first");
  EXPECT_EQ(names(), std::set<std::string>{"model.pt"});
}

TEST_F(ReplacedFileTest, ACheckSeesTheCompleteFileBeforeItHasItsName) {
  const auto write = [&](const std::string& content, bool is_right) {
    return test::outcome_of([&] {
      replace_file(
          file.string(), [&](std::ostream& stream) { stream << content; },
          [&](const std::string& part) {
            EXPECT_EQ(content_of(part), content);
            EXPECT_NE(content_of(file), content);
            if (!is_right) fail(FPT_ERR_FILE, "it is another one");
          });
    });
  };
  EXPECT_OK(write("first", true));
  EXPECT_FAILS(write("second", false), FPT_ERR_FILE, "it is another one");
  EXPECT_EQ(content_of(file), "first");
  EXPECT_EQ(names(), std::set<std::string>{"model.pt"});
}

TEST_F(ReplacedFileTest, AFileSystemThatTakesNoMoreLeavesTheOldOne) {
  EXPECT_OK(write("first"));
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  const rlimit small{4096, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const test::Outcome outcome = write(std::string(100000, 'x'));
  setrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, handler);
  EXPECT_FAILS(outcome, FPT_ERR_FILE, "model.pt cannot be written: it was taken in part only");
  EXPECT_EQ(content_of(file), "first");
  EXPECT_EQ(names(), std::set<std::string>{"model.pt"});
}

/// Files and folders in the order in which they were synced, each with the content of the file by then.
std::vector<std::pair<std::string, std::string>> synced;
fs::path watched;

bool note_sync(int descriptor) {
  const fs::path path = fs::read_symlink("/proc/self/fd/" + std::to_string(descriptor));
  synced.emplace_back(path.filename().string(), content_of(watched));
  return true;
}

TEST_F(ReplacedFileTest, IsOnTheDiskBeforeItTakesTheNameAndTheNameBeforeItReturns) {
  EXPECT_OK(write("first"));
  synced.clear();
  watched = file;
  on_sync = note_sync;
  const test::Outcome outcome = write("second");
  on_sync = nullptr;
  EXPECT_OK(outcome);
  const std::string part = concat(".model.pt.", getpid(), ".part"), here = folder.path().filename().string();
  EXPECT_EQ(synced, (std::vector<std::pair<std::string, std::string>>{{part, "first"}, {here, "second"}}));
}

TEST_F(ReplacedFileTest, ADiskThatLosesItLeavesTheOldOne) {
  EXPECT_OK(write("first"));
  on_sync = [](int) { return false; };
  const test::Outcome outcome = write("second");
  on_sync = nullptr;
  EXPECT_FAILS(outcome, FPT_ERR_FILE, "model.pt cannot be written: Input/output error");
  EXPECT_EQ(content_of(file), "first");
  EXPECT_EQ(names(), std::set<std::string>{"model.pt"});
}

TEST_F(ReplacedFileTest, IsLockedUnderTheNameThatThePythonSideUses) {
  replace_file(file.string(), [&](std::ostream&) {
    EXPECT_EQ(names(), (std::set<std::string>{".model.pt.lock", concat(".model.pt.", getpid(), ".part")}));
  });
}

TEST_F(ReplacedFileTest, ASecondWriterIsTold) {
  EXPECT_OK(write("first"));
  replace_file(file.string(), [&](std::ostream& stream) {
    stream << "second";
    EXPECT_FAILS(write("third"), FPT_ERR_LOCKED, "write %r for the rank");
  });
  EXPECT_EQ(content_of(file), "second");
  EXPECT_EQ(names(), std::set<std::string>{"model.pt"});
}

TEST_F(ReplacedFileTest, PermissionsStayAndLinksAreFollowed) {
  EXPECT_OK(write("first"));
  fs::permissions(file, fs::perms::owner_read | fs::perms::owner_write);
  fs::create_symlink("model.pt", folder.path() / "link");
  replace_file((folder.path() / "link").string(), [](std::ostream& stream) { stream << "second"; });
  EXPECT_TRUE(fs::is_symlink(folder.path() / "link"));
  EXPECT_EQ(content_of(file), "second");
  EXPECT_EQ(fs::status(file).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(ReplacedFileTest, PlacesThatCannotBeWrittenAreTold) {
  const auto outcome = [](const fs::path& place) {
    return test::outcome_of(
        [&] { replace_file(place.string(), [](std::ostream&) { FAIL() << "nothing to write into"; }); });
  };
  EXPECT_FAILS(outcome(folder.path() / "none" / "model.pt"), FPT_ERR_FILE, "there is no folder");
  EXPECT_FAILS(outcome(folder.path()), FPT_ERR_FILE, "it is a folder");
  EXPECT_FAILS(outcome(folder.write("closure.py", "def")), FPT_ERR_FILE, "there is a script; name another file");
  EXPECT_EQ(content_of(folder.path() / "closure.py"), "def");
  EXPECT_FAILS(outcome("/dev/null"), FPT_ERR_FILE, "it is no regular file");
  EXPECT_FAILS(outcome(folder.write("file", "") / "model.pt"), FPT_ERR_FILE, "Not a directory");
  if (geteuid() == 0) return;  // nothing is protected from root
  fs::permissions(folder.write("model.pt", "first"), fs::perms::owner_read);
  EXPECT_FAILS(outcome(file), FPT_ERR_FILE, "protected against writing");
}

}  // namespace
}  // namespace fpt
