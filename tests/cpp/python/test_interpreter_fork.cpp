// SPDX-License-Identifier: MIT
/// Programs that fork where Python runs. Each case runs in a process of its own.
#include <sys/wait.h>

#include <csignal>
#include <thread>

#include "script.hpp"

namespace fpt {
namespace {

using test::in;
using test::out;
using test::Script;

/// Exit code of a child that runs `body`; a number from 1000 on for the signal that has ended it.
template <class Body>
int code_of_child(const Body& body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);  // where it waits for ever
    body();
    std::exit(99);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

/// A script whose exit function adds a line to a file, and the lines.
struct Traced {
  const test::Folder folder;
  const std::string file = (folder.path() / "ends").string();
  const Script script{R"(
import atexit, os, threading
def busy():
    while True: pass
def start(): threading.Thread(target=busy, daemon=True).start()
def fork(): return os.fork()
def twice(x): return 2 * x
def trace(file): atexit.register(lambda: open(file, "a").write("end\n"))
)"};
  Traced() { EXPECT_OK(script.call("trace", {in(file.c_str())})); }
  int ends() const {
    std::ifstream stream(file);
    int count = 0;
    for (std::string line; std::getline(stream, line);) ++count;
    return count;
  }
};

TEST(ForkOfTheProgram, EndsAlsoWhileAThreadThatIsNotThereHasTheLock) {
  const Traced traced;
  ASSERT_OK(traced.script.call("start"));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(code_of_child([] { std::exit(7); }), 7);
  EXPECT_EQ(code_of_child([] { std::thread([] { std::exit(8); }).join(); }), 8);
  EXPECT_EQ(code_of_child([&] { fpt_module_free(traced.script.handle()); }), 99);
  EXPECT_EQ(traced.ends(), 0) << "what Python does at the end belongs to the parent";
}

TEST(ForkOfTheProgram, EndsInAThreadThatHasCalled) {
  const Traced traced;
  ASSERT_OK(traced.script.call("start"));
  int status = -1;
  std::thread([&] {
    EXPECT_OK(traced.script.call("twice", {in(1.0)}));
    const pid_t child = fork();
    if (child == 0) {
      alarm(60);
      return;  // it is the only thread of the child, which ends with it
    }
    waitpid(child, &status, 0);
  }).join();
  EXPECT_EQ(status, 0);
}

TEST(ForkOfTheProgram, AChildThatCallsEndsPython) {
  const Traced traced;
  EXPECT_EQ(code_of_child([&] {
              double x = 2, y = 0;
              EXPECT_OK(traced.script.call("twice", {in(x)}, {out(y)}));
              std::exit(static_cast<int>(y));
            }),
            4);
  EXPECT_EQ(traced.ends(), 1);
}

TEST(ForkOfPython, AChildEndsPython) {
  const Traced traced;
  ASSERT_OK(traced.script.call("start"));
  int64_t child = -1;
  ASSERT_OK(traced.script.call("fork", {}, {out(child)}));
  if (child == 0) {
    alarm(60);
    std::exit(5);
  }
  int status = 0;
  waitpid(static_cast<pid_t>(child), &status, 0);
  EXPECT_TRUE(WIFEXITED(status)) << status;
  EXPECT_EQ(WEXITSTATUS(status), 5);
  EXPECT_EQ(traced.ends(), 1);
}

TEST(ForkOfTheProgram, AChildClosesALockOfPython) {
  const test::Folder folder;
  const std::filesystem::path path = folder.path() / ".lock";
  const Script script(
      "from ftn_pytorch.system.file_lock import Lock\n"
      "def take(path): global lock; lock = Lock(path, 'model')\n"
      "def end(): lock.release()\n");
  ASSERT_OK(script.call("take", {in(path.c_str())}));
  ASSERT_TRUE(test::has_open(path));
  EXPECT_EQ(code_of_child([&] { _exit(test::has_open(path)); }), 0);
  EXPECT_TRUE(script.truth("lock.is_held()"));
  ASSERT_OK(script.call("end"));
  EXPECT_FALSE(test::has_open(path));
  const std::ofstream other(path);  // perhaps with the same descriptor
  EXPECT_EQ(code_of_child([&] { _exit(test::has_open(path)); }), 1);
}

}  // namespace
}  // namespace fpt
