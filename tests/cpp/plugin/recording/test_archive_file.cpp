// SPDX-License-Identifier: MIT
/// Files of Python and of C++ (make_archives.py), read and written by C++.
#include <ATen/ops/arange.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/ones.h>

#include "plugin/recording/archive_file.hpp"
#include "plugin/recording/python_side.hpp"
#include "support.hpp"

namespace fpt::direct {
namespace {

namespace fs = std::filesystem;
using test::outcome_of;

/// Where make_archives.py has put its files.
fs::path given() { return std::getenv("FPT_TEST_ARCHIVES"); }

at::Tensor array(const ftr::Content& content, const std::string& name) {
  for (const auto& [known, tensor] : content.arrays)
    if (known == name) return tensor;
  ADD_FAILURE() << "there is no " << name;
  return {};
}

std::string bytes_of(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

class ArchiveFileTest : public testing::Test {
 protected:
  test::Folder folder;
  fs::path file = folder.path() / "model.ckpt";

  test::Outcome read(const fs::path& path) const {
    return outcome_of([&] { (void)read_archive(path.string()); });
  }
  void put(const std::string& bytes) const { std::ofstream(file, std::ios::binary) << bytes; }
  ftr::Content some() const {
    ftr::Content content;
    content.state = "[{}, {}]";
    content.arrays = {{"a", at::arange(6.0f).reshape({2, 3})}};
    content.description = R"({"step": 1, "archive": "torch"})";
    return content;
  }
};

TEST_F(ArchiveFileTest, WhatPythonHasWrittenIsThere) {
  const ftr::Content content = read_archive(given() / "python.ftr");
  EXPECT_TRUE(content.is_recording);
  EXPECT_EQ(content.state, R"([{"numbers": 1}, {}])");
  EXPECT_EQ(content.description, R"({"step": 7, "archive": "torch", "script": "caf\u00e9"})");
  ASSERT_EQ(content.arrays.size(), 3u);
  EXPECT_TRUE(array(content, "net/0.weight").equal(at::arange(6.0f).reshape({2, 3})));
  EXPECT_EQ(array(content, "opt/state/0/step").item<float>(), 5);
  ASSERT_EQ(content.numbers.size(), 2u);
  EXPECT_EQ(content.numbers[0], (std::pair<std::string, double>("opt.0.lr", 1e-3)));
  EXPECT_GT(content.generator.numel(), 1000);
  const auto tapes = content.recording.toGenericDict();
  EXPECT_EQ(tapes.at("version").toInt(), 2);
  const auto functions = tapes.at("functions").toGenericDict();
  const auto tape = functions.at("ftn_pytorch_forward").toListRef()[0].toGenericDict();
  const auto constant = tape.at("constants").toListRef()[1].toTupleRef().elements()[1].toTensor();
  EXPECT_TRUE(constant.is_alias_of(array(content, "net/0.weight"))) << "a constant that is the state";
}

TEST_F(ArchiveFileTest, FilesOfBeforeHaveNoNumbers) {
  const ftr::Content content = read_archive(given() / "older.ckpt");
  EXPECT_TRUE(content.numbers.empty());
  EXPECT_FALSE(content.generator.defined());
  EXPECT_FALSE(content.is_recording);
  EXPECT_TRUE(content.recording.isNone());
}

TEST_F(ArchiveFileTest, EveryTypeAndViewArrives) {
  const ftr::Content content = read_archive(given() / "views.ckpt");
  for (const char* type : {"uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64", "float16",
                           "bfloat16", "float32", "float64", "float8_e5m2", "float8_e4m3fn"}) {
    const at::Tensor tensor = array(content, std::string("torch.") + type);
    EXPECT_TRUE(tensor.to(at::kFloat)
                    .equal(at::arange(3).to(at::kFloat).index_put_({at::arange(3)}, array(content, "torch.float32"))))
        << type;
  }
  const at::Tensor base = array(content, "base"), square = base.reshape({4, 6});
  EXPECT_TRUE(array(content, "transposed").equal(square.t()));
  EXPECT_EQ(array(content, "transposed").strides(), square.t().strides());
  EXPECT_TRUE(array(content, "skipping").equal(square.slice(0, 1, std::nullopt, 2).slice(1, 0, std::nullopt, 3)));
  EXPECT_TRUE(array(content, "expanded").equal(base[2].expand({3, 5})));
  EXPECT_EQ(array(content, "expanded").strides(), at::IntArrayRef({0, 0}));
  EXPECT_EQ(array(content, "empty").sizes(), at::IntArrayRef({0, 4}));
  EXPECT_EQ(array(content, "scalar").item<float>(), 23);
  for (const char* name : {"transposed", "skipping", "expanded", "scalar"})
    EXPECT_TRUE(array(content, name).is_alias_of(base)) << name;
  EXPECT_TRUE(array(content, "conjugate").is_conj());
  EXPECT_TRUE(array(content, "conjugate").is_alias_of(array(content, "complex")));
  EXPECT_TRUE(array(content, "conjugate").resolve_conj().equal(array(content, "complex").conj()));
  EXPECT_EQ(array(content, "negative")[0].item<float>(), -2);
}

TEST_F(ArchiveFileTest, ContainersMayStandInSeveralPlaces) {
  const auto recording = read_archive(given() / "containers.ftr").recording.toGenericDict();
  const auto pair = recording.at("a").toListRef();
  EXPECT_TRUE(pair[0].is(pair[1]));
  EXPECT_EQ(pair[1].toListRef().size(), 2u);
  EXPECT_EQ(recording.at("b").toGenericDict().at("c").toTupleRef().size(), 0u);
  EXPECT_EQ(recording.at("d").toInt(), int64_t{1} << 40);
}

TEST_F(ArchiveFileTest, WhatIsWrittenIsReadBack) {
  for (const char* name : {"python.ftr", "python.ckpt", "views.ckpt", "containers.ftr"}) {
    const ftr::Content before = read_archive(given() / name);
    write_archive(file, before);
    const ftr::Content after = read_archive(file);
    EXPECT_EQ(after.state, before.state);
    EXPECT_EQ(after.description, before.description);
    EXPECT_EQ(after.is_recording, before.is_recording);
    EXPECT_EQ(after.numbers, before.numbers);
    EXPECT_TRUE(after.generator.equal(before.generator));
    ASSERT_EQ(after.arrays.size(), before.arrays.size());
    for (const auto& [array_name, tensor] : before.arrays) {
      const at::Tensor same = array(after, array_name);
      EXPECT_EQ(same.scalar_type(), tensor.scalar_type()) << array_name;
      EXPECT_EQ(same.strides(), tensor.strides()) << array_name;
      EXPECT_TRUE(same.to(at::kComplexDouble).equal(tensor.to(at::kComplexDouble))) << array_name;
      for (const auto& [other, another] : before.arrays)
        EXPECT_EQ(same.is_alias_of(array(after, other)), tensor.is_alias_of(another)) << array_name << ", " << other;
    }
    std::ostringstream texts[2];
    if (before.is_recording && std::string(name) == "containers.ftr")
      texts[0] << before.recording, texts[1] << after.recording;
    EXPECT_EQ(texts[0].str(), texts[1].str());
  }
}

TEST_F(ArchiveFileTest, PythonReadsTheSame) {
  std::string pairs, told;
  for (const std::string name : {"python.ftr", "python.ckpt", "no_numbers.ckpt", "views.ckpt"}) {
    const fs::path ours = folder.path() / name;
    write_archive(ours, read_archive(given() / name));
    pairs += " \"" + (given() / name).string() + "\" \"" + ours.string() + "\"";
    told += (told.empty() ? "" : "\n") + ours.string() + " is the same";
  }
  EXPECT_EQ(test::python_side("compare" + pairs), told);
}

TEST_F(ArchiveFileTest, LogicalArraysAreReadBackWithoutTheirNumbers) {
  ftr::Content content = some();
  content.arrays.emplace_back("b", at::ones({3}, at::kBool));
  write_archive(file, content);
  EXPECT_TRUE(array(read_archive(file), "b").equal(at::ones({3}, at::kBool)));
}

TEST_F(ArchiveFileTest, NothingOfAutogradIsWritten) {
  ftr::Content content = some();
  content.arrays[0].second.requires_grad_();
  content.arrays.emplace_back("b", content.arrays[0].second.mul(2));
  write_archive(file, content);
  const ftr::Content after = read_archive(file);
  EXPECT_FALSE(array(after, "a").requires_grad());
  EXPECT_EQ(array(after, "b")[1][2].item<float>(), 10);
}

TEST_F(ArchiveFileTest, TheNameMayHoldTheRank) {
  const test::Variable rank("PMI_RANK", "3"), size("PMI_SIZE", "4");
  write_archive(folder.path() / "of_%r.ckpt", some());
  EXPECT_TRUE(fs::exists(folder.path() / "of_3.ckpt"));
  EXPECT_OK(read(folder.path() / "of_%r.ckpt"));
  EXPECT_FAILS(read("  "), FPT_ERR_FILE, "the name of the checkpoint is empty");
}

TEST_F(ArchiveFileTest, WhatCannotBeReadIsToldWithTheReason) {
  EXPECT_FAILS(read(file), FPT_ERR_FILE, "model.ckpt cannot be read: No such file");
  EXPECT_FAILS(read(folder.path()), FPT_ERR_FILE, "it is a folder");
  put("");
  EXPECT_FAILS(read(file), FPT_ERR_FORMAT, "is no checkpoint of ftn_pytorch; it is empty");
  put("%PDF" + std::string(200, 'x'));
  EXPECT_FAILS(read(file), FPT_ERR_FORMAT, "it begins with other bytes");
  put("PK" + std::string(200, 'x'));
  EXPECT_FAILS(read(file), FPT_ERR_FORMAT, "it is a zip archive");
}

TEST_F(ArchiveFileTest, DamagedFilesAreCorrupt) {
  const std::string whole = bytes_of(given() / "python.ftr");
  for (const std::size_t kept : {whole.size() - 1, whole.size() - 32, whole.size() - 72, whole.size() / 2}) {
    put(whole.substr(0, kept));
    EXPECT_FAILS(read(file), FPT_ERR_CORRUPT, "the end of it is missing or has been changed") << kept;
  }
  for (const std::size_t at : {std::size_t{0}, whole.size() / 2, whole.size() - 80, whole.size() - 1}) {
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    put(changed);
    EXPECT_FAILS(read(file), FPT_ERR_CORRUPT, "does not agree with its checksum") << at;
  }
}

TEST_F(ArchiveFileTest, WhatCannotBeStoredIsNamedAndNothingIsWritten) {
  const auto write = [&](const ftr::Content& content) { return outcome_of([&] { write_archive(file, content); }); };
  ftr::Content content = some();
  content.arrays.push_back(content.arrays[0]);
  EXPECT_FAILS(write(content), FPT_ERR_RESULT_TYPE, "the name a stands twice");
  content.arrays = {{"a", at::eye(2).to_sparse()}};
  EXPECT_FAILS(write(content), FPT_ERR_RESULT_TYPE, "a tensor is not dense");
  content.arrays = {{"a", at::Tensor()}};
  EXPECT_FAILS(write(content), FPT_ERR_RESULT_TYPE, "a tensor is not dense");
  content.arrays = {{"a", at::ones({2})}, {"b", at::ones({2})}};
  content.arrays[1].second = content.arrays[0].second.view(at::kInt);
  EXPECT_FAILS(write(content), FPT_ERR_RESULT_TYPE, "tensors of type Float and Int share memory");
  content = some();
  content.is_recording = true;
  EXPECT_FAILS(write(content), FPT_ERR_RESULT_TYPE, "tapes belong into saved recordings");
  c10::impl::GenericDict tapes(c10::AnyType::get(), c10::AnyType::get());
  tapes.insert("a", c10::IValue(at::Device(at::kCPU)));
  content.recording = tapes;
  EXPECT_FAILS(write(content), FPT_ERR_RESULT_TYPE, "a value of type Device cannot be stored");
  c10::IValue deep = c10::impl::GenericList(c10::AnyType::get());
  for (int i = 0; i < 300; ++i) {
    c10::impl::GenericList outer(c10::AnyType::get());
    outer.push_back(deep);
    deep = outer;
  }
  tapes.insert_or_assign("a", deep);
  EXPECT_FAILS(write(content), FPT_ERR_RESULT_TYPE, "nested too deeply");
  content = some();
  EXPECT_FAILS(outcome_of([&] { write_archive(folder.path() / "none" / "a.ckpt", content); }), FPT_ERR_FILE,
               "there is no folder");
  content.generator = at::ones({2});
  EXPECT_FAILS(write(content), FPT_ERR_RESULT_TYPE, "no restart could read it: the state of the generator is no row");
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

struct Refused {
  const char* name;
  const char* reason;
};

class RefusedArchive : public testing::TestWithParam<Refused> {};

TEST_P(RefusedArchive, IsAnErrorOfFormat) {
  const fs::path file = given() / (std::string("refused_") + GetParam().name);
  const test::Outcome outcome = outcome_of([&] { (void)read_archive(file.string()); });
  const std::string name = file.filename().string();
  EXPECT_FAILS(outcome, FPT_ERR_FORMAT, name + " has entries that no checkpoint has, so it is not read: ");
  EXPECT_FAILS(outcome, FPT_ERR_FORMAT, GetParam().reason);
}

INSTANTIATE_TEST_SUITE_P(
    , RefusedArchive,
    testing::Values(
        Refused{"parameter.ftr", "it has the name torch._utils._rebuild_parameter"},
        Refused{"sparse.ftr", "it has the name torch._utils._rebuild_sparse_tensor"},
        Refused{"object.ftr", "it has the name types.SimpleNamespace"},
        Refused{"complex.ftr", "it has the name __builtin__.complex"},
        Refused{"set.ftr", "it has the name __builtin__.set"},
        Refused{"large_integer.ftr", "an integer has more than 64 bits"}, Refused{"cycle.ftr", "is complete"},
        Refused{"deep.ftr", "nested too deeply"}, Refused{"wide.ftr", "too many values"},
        Refused{"key.ftr", "neither a text nor an integer"}, Refused{"no_tensor.ftr", "an array is no tensor"},
        Refused{"no_names.ftr", "is no text"}, Refused{"integers.ftr", "a number is not real"},
        Refused{"generator.ftr", "no row of bytes"}, Refused{"state.ftr", "the state is no text"},
        Refused{"later.ftr", "of a later version"}, Refused{"entry.ftr", "it has the entry \"more\""},
        Refused{"no_state.ftr", "are missing"}, Refused{"no_recording.ftr", "its tapes are missing"},
        Refused{"recording_list.ftr", "\"recording\" is no dict"}, Refused{"no_dict.ftr", "the archive is no dict"},
        Refused{"tapes.ckpt", "and has tapes"}, Refused{"plain.ckpt", "does not contain any files"},
        Refused{"no_zip.ckpt", "failed finding central directory"},
        Refused{"no_pickle.ckpt", "torch.save has not written it"},
        Refused{"no_storage.ckpt", "the storage \"0\" is missing"}, Refused{"short.ckpt", "elements, and there are"},
        Refused{"order.ckpt", "another byte order"}, Refused{"logical.ckpt", "neither true nor false"}),
    [](const auto& info) { return std::string(info.param.name).substr(0, std::string(info.param.name).find('.')); });

TEST_F(ArchiveFileTest, ArraysOfNumPyAreLeftToPython) {
  EXPECT_FAILS(read(given() / "numpy.ckpt"), FPT_ERR_FORMAT,
               "numpy.ckpt holds arrays of NumPy and no tensors: only Python");
}

}  // namespace
}  // namespace fpt::direct
