// SPDX-License-Identifier: MIT
#include "base/paths.hpp"
#include "support.hpp"

namespace fpt::test {
namespace {

namespace fs = std::filesystem;

TEST(Paths, AnAbsolutePathStaysAsItIs) { EXPECT_EQ(absolute_path("/net.pt"), "/net.pt"); }

TEST(Paths, WithoutAWorkingDirectoryNoRelativeOneCanBeTold) {
  const fs::path before = fs::current_path(), gone = before / concat("gone_", getpid());
  fs::create_directory(gone);
  fs::current_path(gone);
  fs::remove(gone);
  EXPECT_FAILS(outcome_of([] { (void)absolute_path("net.pt"); }), FPT_ERR_FILE,
               "net.pt is relative to the working directory");
  EXPECT_EQ(absolute_path("/net.pt"), "/net.pt");
  fs::current_path(before);
}

TEST(Paths, TheFileOfAnObjectInALibraryIsFound) {
  EXPECT_EQ(fs::canonical(object_file_of(reinterpret_cast<const void*>(&absolute_path))),
            fs::canonical("/proc/self/exe"));
  int local = 0;
  EXPECT_EQ(object_file_of(&local), "");
}

}  // namespace
}  // namespace fpt::test
