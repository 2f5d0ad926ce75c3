// SPDX-License-Identifier: MIT
#include <ATen/ops/full.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <set>

#include "plugin/recording/archive_file.hpp"
#include "plugin/recording/checkpoint_folder.hpp"
#include "plugin/recording/python_side.hpp"
#include "support.hpp"

namespace fpt::direct {
namespace {

namespace fs = std::filesystem;
using test::outcome_of;
using test::python_side;

std::vector<std::string> warnings;

class CheckpointFolderTest : public testing::Test {
 protected:
  CheckpointFolderTest() {
    warnings.clear();
    fpt_on_warning(
        [](const char* text, int64_t length) { warnings.emplace_back(text, static_cast<std::size_t>(length)); });
  }
  ~CheckpointFolderTest() override { fpt_on_warning(nullptr); }
  test::Folder parent;
  fs::path place = parent.path() / "steps";
  std::string text = place.string();

  static void write_file(const std::string& path, int64_t step) {
    ftr::Content content;
    content.state = "[{}, {}]";
    content.arrays = {{"a", at::full({}, static_cast<double>(step))}};
    content.description = concat("{\"step\": ", step, ", \"archive\": \"torch\"}");
    write_archive(path, content);
  }
  static test::Outcome write(CheckpointFolder& folder, std::optional<int64_t> step = {}, int64_t keep = 3) {
    return outcome_of([&] { (void)folder.write(keep, step, write_file); });
  }
  std::set<std::string> names() const {
    std::set<std::string> found;
    for (const auto& entry : fs::directory_iterator(place)) found.insert(entry.path().filename().string());
    return found;
  }
  static std::vector<int64_t> steps(const std::vector<FolderEntry>& entries) {
    std::vector<int64_t> found;
    for (const FolderEntry& entry : entries) found.push_back(entry.step);
    return found;
  }
};

TEST_F(CheckpointFolderTest, StepsCountOnAndTheNewestStay) {
  CheckpointFolder folder(text);
  for (int i = 0; i < 4; ++i) EXPECT_OK(write(folder));
  EXPECT_EQ(names(), (std::set<std::string>{".lock", "checkpoint-000000000002.ckpt", "checkpoint-000000000003.ckpt",
                                            "checkpoint-000000000004.ckpt"}));
  EXPECT_OK(write(folder, 10, 1));
  EXPECT_EQ(steps(folder.entries()), std::vector<int64_t>{10});
  EXPECT_EQ(checkpoint_name(1234567890123), "checkpoint-1234567890123.ckpt");
}

TEST_F(CheckpointFolderTest, OtherNamesAreLeftAlone) {
  CheckpointFolder folder(text);
  EXPECT_OK(write(folder));
  for (const char* name : {"checkpoint-x.ckpt", "checkpoint-.ckpt", "checkpoint--5.ckpt", "checkpoint-5.ckpt.abandoned",
                           "checkpoint-99999999999999999999.ckpt", "model.ckpt", ".checkpoint-1.ckpt.7x.part"})
    std::ofstream(place / name) << "somebody else's";
  for (const char* name : {".checkpoint-1.ckpt.4711.part", ".checkpoint-000000000002.ckpt.12~export.part"})
    std::ofstream(place / name) << "cut off";
  EXPECT_OK(write(folder, {}, 1));
  EXPECT_EQ(steps(folder.entries()), std::vector<int64_t>{2});
  EXPECT_EQ(names().size(), 2u + 7u) << "what killed writers have left is gone, and nothing else";
}

TEST_F(CheckpointFolderTest, AnEarlierStepIsRefused) {
  CheckpointFolder folder(text);
  EXPECT_OK(write(folder, 5));
  EXPECT_FAILS(write(folder, 3), FPT_ERR_ARGUMENT, "checkpoint-000000000005.ckpt is later than step 3");
  EXPECT_OK(write(folder, 5));
  EXPECT_FAILS(write(folder, -1), FPT_ERR_ARGUMENT, "step is -1, it must not be negative");
  EXPECT_FAILS(write(folder, {}, 0), FPT_ERR_ARGUMENT, "keep is 0, it must be at least 1");
}

TEST_F(CheckpointFolderTest, ARunThatWasGivenUpIsSetAside) {
  CheckpointFolder folder(text);
  for (const int64_t step : {1, 2, 3}) EXPECT_OK(write(folder, step));
  folder.went_on_from(1);
  EXPECT_OK(write(folder));
  EXPECT_EQ(names(), (std::set<std::string>{".lock", "checkpoint-000000000001.ckpt", "checkpoint-000000000002.ckpt",
                                            "checkpoint-000000000002.ckpt.abandoned",
                                            "checkpoint-000000000003.ckpt.abandoned"}));
  folder.went_on_from(1);
  EXPECT_OK(write(folder));
  EXPECT_TRUE(names().count("checkpoint-000000000002.ckpt.abandoned.2"));
}

TEST_F(CheckpointFolderTest, ARestartTakesTheNewestOrTheOneAskedFor) {
  CheckpointFolder folder(text);
  EXPECT_FAILS(outcome_of([&] { (void)folder.candidates({}); }), FPT_ERR_NO_CHECKPOINT, "steps does not exist");
  fs::create_directory(place);
  EXPECT_FAILS(outcome_of([&] { (void)folder.candidates({}); }), FPT_ERR_NO_CHECKPOINT, "holds no checkpoint");
  for (const int64_t step : {1, 4, 9}) EXPECT_OK(write(folder, step));
  EXPECT_EQ(steps(folder.candidates({})), (std::vector<int64_t>{9, 4, 1}));
  EXPECT_EQ(steps(folder.candidates(4)), (std::vector<int64_t>{4, 1}));
  EXPECT_FAILS(outcome_of([&] { (void)folder.candidates(5); }), FPT_ERR_NO_CHECKPOINT,
               "holds no checkpoint of step 5, but of 9, 4, 1");
}

TEST_F(CheckpointFolderTest, ARestartMakesTheFolderOfAPlaceThatHasNone) {
  const fs::path inner = parent.path() / "new" / "steps";
  EXPECT_FAILS(outcome_of([&] { require_checkpoint(inner); }), FPT_ERR_NO_CHECKPOINT, "nothing to restore");
  EXPECT_TRUE(fs::is_directory(inner.parent_path()) && !fs::exists(inner));
  parent.write("file", "");
  EXPECT_FAILS(outcome_of([&] { require_checkpoint(parent.path() / "file" / "a" / "b"); }), FPT_ERR_NO_CHECKPOINT, "");
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("file/a cannot be made in"), std::string::npos) << warnings[0];
  EXPECT_FAILS(outcome_of([&] { require_checkpoint(parent.path() / "other" / "a.ckpt"); }), FPT_ERR_NO_CHECKPOINT, "");
  EXPECT_FALSE(fs::exists(parent.path() / "other"));
}

TEST_F(CheckpointFolderTest, PlacesThatCannotBeWrittenAreTold) {
  CheckpointFolder file(parent.write("file", "").string());
  EXPECT_FAILS(write(file), FPT_ERR_FILE, "file is a file; checkpoint() needs a folder");
  CheckpointFolder below((parent.path() / "file" / "a" / "b").string());
  EXPECT_FAILS(write(below), FPT_ERR_FILE, "b cannot be made in");
  EXPECT_FAILS(outcome_of([&] { (void)below.entries(); }), FPT_ERR_FILE, "cannot be read");
  CheckpointFolder folder(text);
  EXPECT_OK(write(folder, 1));
  fs::create_directories(place / "checkpoint-000000000000.ckpt" / "full");
  EXPECT_OK(write(folder, 2, 2));
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("is not needed any more, and cannot be removed"), std::string::npos);
}

TEST_F(CheckpointFolderTest, OneOwnerAtATime) {
  {
    CheckpointFolder first(text), second(text);
    EXPECT_OK(write(first));
    EXPECT_FAILS(write(second), FPT_ERR_LOCKED, "is being written by this process itself");
    EXPECT_OK(write(first));
  }
  CheckpointFolder third(text);
  EXPECT_OK(write(third));
  fs::rename(place, parent.path() / "moved");
  EXPECT_OK(write(third)) << "a new folder of that name is locked, too";
  EXPECT_TRUE(names().count(".lock"));
}

TEST_F(CheckpointFolderTest, PythonAndThisShareAFolder) {
  EXPECT_EQ(python_side("write \"" + text + "\" 3"), "");
  CheckpointFolder folder(text);
  EXPECT_EQ(steps(folder.candidates({})), std::vector<int64_t>{3});
  EXPECT_EQ(read_archive(folder.candidates({})[0].path).arrays[0].second.item<double>(), 3);
  EXPECT_OK(write(folder));
  EXPECT_EQ(python_side("restore \"" + text + "\""), "4 4.0");
  const std::string told = python_side("locked \"" + text + "\"");
  EXPECT_EQ(told.rfind(concat("LOCKED the folder ", text, " is being written by process ", getpid(), " on "), 0), 0u)
      << told;
}

TEST_F(CheckpointFolderTest, PythonHoldsItsLockAndIsNamed) {
  const fs::path input = parent.path() / "open";
  ASSERT_EQ(mkfifo(input.c_str(), 0600), 0);
  test::PythonSide holder("hold \"" + text + "\" < \"" + input.string() + "\"");
  std::ofstream keep_open(input);
  EXPECT_EQ(holder.line(), "held");
  CheckpointFolder folder(text);
  EXPECT_FAILS(write(folder), FPT_ERR_LOCKED, "is being written by process ");
  keep_open.close();
  EXPECT_EQ(holder.rest(), "");
  EXPECT_OK(write(folder, 5));
}

TEST_F(CheckpointFolderTest, AForkedChildHoldsNothing) {
  auto folder = std::make_unique<CheckpointFolder>(text);
  EXPECT_OK(write(*folder));
  const pid_t child = fork();
  if (child == 0) {
    folder.reset();
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(names().count(".lock"));
  CheckpointFolder second(text);
  EXPECT_FAILS(write(second), FPT_ERR_LOCKED, "");
}

}  // namespace
}  // namespace fpt::direct
