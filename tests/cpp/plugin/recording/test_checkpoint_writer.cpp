// SPDX-License-Identifier: MIT
#include <sys/stat.h>

#include "ftr/outcome.hpp"
#include "ftr/sha256.hpp"
#include "plugin/recording/checkpoint_writer.hpp"

namespace fpt::direct {
namespace {

namespace fs = std::filesystem;
using ftr::CheckpointFile, ftr::FileKind, ftr::Sha256;

class CheckpointFileTest : public testing::Test {
 protected:
  test::Folder folder;
  std::string file = (folder.path() / "a.ckpt").string();

  void write(FileKind kind = FileKind::checkpoint) const {
    const auto fill = [](const WriteBytes& put) {
      put("arch", 4);
      put("ive", 3);
    };
    write_checkpoint_file(file, kind, "{}", fill,
                          [](const CheckpointFile& written) { EXPECT_EQ(written.archive_length(), 7u); });
  }
  /// Other bytes, with the digest that belongs to them.
  void change(std::size_t from_end, char byte) const {
    std::ifstream stream(file, std::ios::binary);
    std::string bytes(std::istreambuf_iterator<char>(stream), {});
    bytes[bytes.size() - from_end] = byte;
    Sha256 sum;
    sum.update(bytes.data(), bytes.size() - 32);
    const auto digest = sum.digest();
    std::memcpy(bytes.data() + bytes.size() - 32, digest.data(), 32);
    std::ofstream(file, std::ios::binary) << bytes;
  }
  test::Outcome open() const {
    return ftr::test::outcome_of([&] { const CheckpointFile opened(file); });
  }
};

TEST_F(CheckpointFileTest, PartsAreToldApart) {
  write(FileKind::recording);
  EXPECT_EQ(fs::file_size(file), 7u + 2u + 72u);
  const CheckpointFile opened(file);
  EXPECT_EQ(opened.kind(), FileKind::recording);
  EXPECT_EQ(opened.archive_length(), 7u);
  EXPECT_EQ(opened.description(), "{}");
  char bytes[20];
  EXPECT_EQ(opened.read(0, bytes, sizeof bytes), 7u);
  EXPECT_EQ(std::string(bytes, 7), "archive");
  EXPECT_EQ(opened.read(5, bytes, 1), 1u);
  EXPECT_EQ(bytes[0], 'v');
  EXPECT_EQ(opened.read(7, bytes, 1), 0u) << "what follows the archive is none of it";
  EXPECT_EQ(opened.read(UINT64_MAX, bytes, 1), 0u);
}

TEST_F(CheckpointFileTest, TheDescriptionIsToldWithoutALookAtTheRest) {
  EXPECT_EQ(CheckpointFile::description_of(file), "") << "no file";
  write();
  EXPECT_EQ(CheckpointFile::description_of(file), "{}");
  std::fstream(file, std::ios::in | std::ios::out | std::ios::binary) << "A";
  EXPECT_EQ(open().status, FPT_ERR_CORRUPT);
  EXPECT_EQ(CheckpointFile::description_of(file), "{}");
  fs::resize_file(file, fs::file_size(file) - 1);
  EXPECT_EQ(CheckpointFile::description_of(file), "") << "cut off";
  EXPECT_EQ(CheckpointFile::description_of(folder.write("b.ckpt", "foreign")), "");
}

TEST_F(CheckpointFileTest, AFileThatReadsOtherwiseThanItWasWrittenDoesNotCount) {
  write();
  const auto fill = [&](const WriteBytes& put) {
    put("others", 6);
    for (const auto& entry : fs::directory_iterator(folder.path())) {
      if (entry.path().extension() != ".part") continue;
      std::fstream part(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
      part.seekp(200) << "behind the end";
    }
  };
  const auto pass = [](const CheckpointFile&) {};
  EXPECT_FAILS(ftr::test::outcome_of([&] { write_checkpoint_file(file, FileKind::checkpoint, "{}", fill, pass); }),
               FPT_ERR_FILE, "a.ckpt cannot be written: what was written is damaged: the end of it is missing");
  EXPECT_EQ(CheckpointFile(file).archive_length(), 7u) << "the older one stays";
}

TEST_F(CheckpointFileTest, OtherVersionsAndKindsAreRefused) {
  write();
  change(72 - 16, 4);
  EXPECT_FAILS(open(), FPT_ERR_FORMAT, "has format 4 of checkpoints, this version of ftn_pytorch reads format 3");
  change(72 - 16, 0);
  EXPECT_FAILS(open(), FPT_ERR_FORMAT, "has format 0");
  change(72 - 16, 1);
  EXPECT_OK(open());
  change(72 - 20, 2);
  EXPECT_FAILS(open(), FPT_ERR_FORMAT, "is of kind 2, which this version of ftn_pytorch does not know");
}

TEST_F(CheckpointFileTest, LengthsThatAreNotThoseOfTheFileAreDamage) {
  write();
  change(72 - 24, 8);
  EXPECT_FAILS(open(), FPT_ERR_CORRUPT, "the end of it is missing or has been changed");
  change(72 - 31, '\xff');  // the most significant byte of the length of the archive
  EXPECT_FAILS(open(), FPT_ERR_CORRUPT, "the end of it is missing or has been changed");
}

TEST_F(CheckpointFileTest, APipeIsNotWaitedFor) {
  ASSERT_EQ(mkfifo(file.c_str(), 0600), 0);
  EXPECT_FAILS(open(), FPT_ERR_FILE, "a.ckpt cannot be read: it is no regular file");
}

TEST_F(CheckpointFileTest, PathsAreAbsoluteAndLinksAreFollowed) {
  write();
  fs::create_symlink(file, folder.path() / "link");
  EXPECT_EQ(checkpoint_path((folder.path() / "." / "link").string()), fs::canonical(file).string());
  EXPECT_TRUE(fs::path(checkpoint_path("somewhere")).is_absolute());
  for (const char* name : {"", " \t\n"})
    EXPECT_FAILS(ftr::test::outcome_of([&] { (void)checkpoint_path(name); }), FPT_ERR_FILE,
                 "the name of the checkpoint is empty");
}

}  // namespace
}  // namespace fpt::direct
