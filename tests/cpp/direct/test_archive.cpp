// SPDX-License-Identifier: MIT
#include <sys/stat.h>

#include "direct/archive.hpp"
#include "support.hpp"

namespace fpt::test {
namespace {

void put(std::string& bytes, uint64_t value, int size) {
  for (int i = 0; i < size; ++i) bytes += static_cast<char>(value >> 8 * i & 255);
}

/// A zip archive of empty files.
std::string archive_of(const std::vector<std::string>& names, const std::string& comment = {}) {
  std::string bytes, directory;
  for (const std::string& name : names) {
    std::string entry;
    put(entry, 0x02014b50, 4);
    entry += std::string(24, '\0');
    put(entry, name.size(), 2);
    entry += std::string(12, '\0');
    put(entry, bytes.size(), 4);
    directory += entry + name;
    put(bytes, 0x04034b50, 4);
    bytes += std::string(22, '\0');
    put(bytes, name.size(), 2);
    put(bytes, 0, 2);
    bytes += name;
  }
  const std::size_t begin = bytes.size();
  bytes += directory;
  put(bytes, 0x06054b50, 4);
  put(bytes, 0, 4);
  put(bytes, names.size(), 2);
  put(bytes, names.size(), 2);
  put(bytes, directory.size(), 4);
  put(bytes, begin, 4);
  put(bytes, comment.size(), 2);
  return bytes + comment;
}

ModelKind kind_of(const std::string& content, const std::string& name = "model") {
  const Folder folder;
  return kind_of_model(folder.write(name, content).string());
}

const std::vector<std::string> package = {"m/archive_format", "m/data/aotinductor/model/x.so"};
const std::vector<std::string> torchscript = {"net/data.pkl", "net/code/__torch__.py", "net/constants.pkl"};

TEST(Archive, TorchScriptIsToldByItsMembers) {
  EXPECT_EQ(kind_of(archive_of(torchscript)), ModelKind::torchscript);
  EXPECT_EQ(kind_of(archive_of({"net/data.pkl", "net/data/0"})), ModelKind::other);
  EXPECT_EQ(kind_of(archive_of({"code/a.py", "constants.pkl"})), ModelKind::other);
}

TEST(Archive, PackageIsToldByItsFolder) {
  EXPECT_EQ(kind_of(archive_of(package), "net.pt2"), ModelKind::package);
  EXPECT_EQ(kind_of(archive_of({"m/archive_format", "m/models/model.json"}), "net.pt2"), ModelKind::other);
}

TEST(Archive, MachineCodeGoesByItsOwnNameOnly) {
  for (const char* name : {"net.onnx", "net.pt", "net", "pt2"})
    EXPECT_EQ(kind_of(archive_of(package), name), ModelKind::other) << name;
}

TEST(Archive, CommentAtTheEndIsNoObstacle) {
  EXPECT_EQ(kind_of(archive_of(torchscript, "written by hand")), ModelKind::torchscript);
}

TEST(Archive, AnythingElseIsOther) {
  const std::string whole = archive_of(torchscript);
  EXPECT_EQ(kind_of_model("no_such_file"), ModelKind::other);
  EXPECT_EQ(kind_of(""), ModelKind::other);
  EXPECT_EQ(kind_of("PK"), ModelKind::other);
  EXPECT_EQ(kind_of(std::string(100, 'x')), ModelKind::other);
  for (std::size_t length = 0; length < whole.size(); ++length)
    EXPECT_EQ(kind_of(whole.substr(0, length)), ModelKind::other) << length;
}

TEST(Archive, WhatIsLeftOfASavedRecordingIsOne) {
  EXPECT_EQ(kind_of("PK\x03\x04 archive/data.pkl ftn_pytorch checkpoint"), ModelKind::recording);
  for (const char* bytes : {"", "PK", "anything"}) EXPECT_EQ(kind_of(bytes, "net.ftr"), ModelKind::recording);
  const std::string closing = "ftn_pytorch checkpoint" + std::string(200, 'x') + "ftn_pytorch ckpt\2";
  for (char kind : {0, 1})
    EXPECT_EQ(kind_of(closing + std::string(3, '\0') + kind + std::string(51, '\0')),
              kind ? ModelKind::recording : ModelKind::other)
        << "a whole checkpoint has no functions";
}

/// As if its second entry were compressed, and had that size before.
std::string compressed(uint32_t unpacked) {
  std::string bytes = archive_of(torchscript);
  const std::size_t entry = bytes.rfind(std::string("PK\x01\x02", 4), bytes.rfind("net/code/"));
  bytes[entry + 10] = 8;
  for (std::size_t i = 0; i < 4; ++i) bytes[entry + 24 + i] = static_cast<char>(unpacked >> 8 * i & 255);
  return bytes;
}

TEST(Archive, ModelsThatUnpackToFarMoreThanTheyAreAreRefused) {
  EXPECT_EQ(kind_of(compressed(1 << 20)), ModelKind::torchscript) << "code is compressed";
  EXPECT_FAILS(outcome_of([] { kind_of(compressed(4000000000)); }), FPT_ERR_FORMAT, "would unpack to 4000000000 bytes");
  const Folder folder;
  const std::string file = folder.write("model", compressed(4000000000)).string();
  EXPECT_FAILS(outcome_of([&] { require_readable(file); }), FPT_ERR_FORMAT, "would unpack");
}

TEST(Archive, APipeIsNotWaitedFor) {
  const Folder folder;
  const std::string pipe = (folder.path() / "model.pt").string();
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(kind_of_model(pipe), ModelKind::other);
  EXPECT_FAILS(outcome_of([&] { require_readable(pipe); }), FPT_ERR_FILE, "is no regular file");
}

TEST(Archive, NumbersThatMakeNoSenseDoNoHarm) {
  const std::string whole = archive_of(torchscript);
  for (std::size_t at = whole.size() - 22; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(0xff);
    kind_of(damaged);
  }
}

}  // namespace
}  // namespace fpt::test
