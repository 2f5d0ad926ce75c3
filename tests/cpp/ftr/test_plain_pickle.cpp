// SPDX-License-Identifier: MIT
/// Pickles written by hand. Those of Python are in test_archive_file.cpp.
#include <ATen/ops/arange.h>

#include "ftr/outcome.hpp"
#include "ftr/plain_pickle.hpp"
#include "plugin/pickle/pickle_writer.hpp"

namespace ftr {
namespace {

using namespace std::string_literals;

const std::string begin = "\x80\x02"s;
const std::string float_storage = "(X\7\0\0\0storagectorch\nFloatStorage\nX\1\0\0\0aX\3\0\0\0cpuK\4tQ"s;
const std::string rebuild = "ctorch._utils\n_rebuild_tensor_v2\n", hooks = "ccollections\nOrderedDict\n)R";

c10::Storage four_numbers(const std::string& name) {
  if (name != "a") fail(Why::format, "there is no ", name);
  static const at::Tensor numbers = at::arange(4.0f);
  return numbers.storage();
}

c10::IValue value_of(const std::string& body) { return read_plain_pickle(begin + body + ".", four_numbers); }

test::Outcome refusal(const std::string& body) {
  return test::outcome_of([&] { (void)value_of(body); });
}

TEST(PlainPickle, NumbersAndTexts) {
  EXPECT_TRUE(value_of("N").isNone());
  EXPECT_TRUE(value_of("\x88").toBool());
  EXPECT_FALSE(value_of("\x89").toBool());
  EXPECT_EQ(value_of("K\xff").toInt(), 255);
  EXPECT_EQ(value_of("M\1\xff").toInt(), 0xff01);
  EXPECT_EQ(value_of("J\xfe\xff\xff\xff").toInt(), -2);
  EXPECT_EQ(value_of("\x8a\0"s).toInt(), 0);
  EXPECT_EQ(value_of("\x8a\1\xff").toInt(), -1);
  EXPECT_EQ(value_of("\x8a\2\xff\0"s).toInt(), 255);
  EXPECT_EQ(value_of("\x8a\x08\0\0\0\0\0\0\0\x80"s).toInt(), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(value_of("G?\xf0\0\0\0\0\0\0"s).toDouble(), 1);
  EXPECT_EQ(value_of("X\2\0\0\0\xc3\xa9"s).toStringRef(), "\xc3\xa9");
}

TEST(PlainPickle, ContainersAndWhatTheyShare) {
  EXPECT_EQ(value_of("(K\1K\2K\3K\4t").toTupleRef().size(), 4u);
  EXPECT_EQ(value_of("K\1K\2K\3\x87").toTupleRef().size(), 3u);
  EXPECT_EQ(value_of("]K\1a(K\2K\3e").toListRef().size(), 3u);
  EXPECT_EQ(value_of("}K\1NsX\1\0\0\0a(K\1tq\5s(K\2h\5u"s).toGenericDict().size(), 3u);
  const auto twice = value_of("(]q\1K\1ah\1r\0\1\0\0j\0\1\0\0t"s).toTupleRef().elements();
  EXPECT_TRUE(twice[0].is(twice[1]) && twice[1].is(twice[2]));
}

TEST(PlainPickle, ATensorIsAView) {
  const std::string arguments = float_storage + "K\1K\3\x85K\1\x85\x89" + hooks;
  const at::Tensor tensor = value_of(rebuild + "(" + arguments + "tR").toTensor();
  EXPECT_TRUE(tensor.equal(at::arange(1, 4).to(at::kFloat)));
  EXPECT_TRUE(value_of(rebuild + "(" + arguments + "}X\3\0\0\0neg\x88stR"s).toTensor().is_neg());
}

struct Refusal {
  std::string body, reason;
};

TEST(PlainPickle, EverythingElseIsRefused) {
  const std::string shape = "K\3\x85K\1\x85\x89";
  const std::string tensor = rebuild + "(" + float_storage + "K\0"s;
  const std::vector<Refusal> refusals = {
      {"", "a value is missing"},
      {"NN", "behind the last value"},
      {"(N", "behind the last value"},
      {"N.N", "behind the last value"},
      {"K", "it ends early"},
      {"X\5\0\0\0ab"s, "it ends early"},
      {"J\0"s, "it ends early"},
      {"cos", "it ends early"},
      {"\x8a\x09" + std::string(9, '\1'), "an integer has more than 64 bits"},
      {"cos\nsystem\n", "it has the name os.system, which no plain value needs"},
      {"ctorch\nQInt8Storage\n", "it has the name torch.QInt8Storage"},
      {"c__builtin__\neval\n", "it has the name __builtin__.eval"},
      {"c\xff\n\n", "it has the name \\xff."},
      {"I1\n", "it has the opcode 73, which no plain value needs"},
      {"Nb", "it has the opcode 98"},
      {"N0", "it has the opcode 48"},
      {"t", "a mark is missing"},
      {"N(\x85", "a value is missing"},
      {"N(a", "a value is missing"},
      {"NNa", "something is put into what is no list or dict"},
      {"]q\1h\1a", "or is complete"},
      {"]q\1(h\1e", "or is complete"},
      {"](q\1", "a value is missing"},
      {"h\1", "it refers to a value that is not there"},
      {"}Na", "something is appended to a dict"},
      {"]NNs", "a key is put into a list"},
      {"}(Nu", "a key has no value"},
      {"}NNs", "a key is neither a text nor an integer"},
      {"}K\1NsK\1Ns", "a key stands twice"},
      {"ctorch\nFloatStorage\n", "a name of Python or a storage stands where a value must be"},
      {"]ctorch\nFloatStorage\na", "a name of Python or a storage stands"},
      {"ctorch\nFloatStorage\n\x85", "a name of Python or a storage stands"},
      {float_storage, "a name of Python or a storage stands"},
      {"NQ", "the description of a storage is no tuple"},
      {"N\x85Q", "a storage is described by something else"},
      {"(X\7\0\0\0storageNX\1\0\0\0aX\3\0\0\0cpuK\4tQ"s, "the class of a storage has another type"},
      {"(X\7\0\0\0storagectorch\nuint16\nX\1\0\0\0aX\3\0\0\0cpuK\4tQ"s, "torch.uint16 is no class of storages"},
      {"(X\7\0\0\0storagectorch\nFloatStorage\nX\1\0\0\0bX\3\0\0\0cpuK\4tQ"s, "there is no b"},
      {"(X\7\0\0\0storagectorch\nFloatStorage\nX\1\0\0\0aX\3\0\0\0cpuK\5tQ"s,
       "is said to have 5 elements, and there are 4"},
      {"(X\7\0\0\0storagectorch\nIntStorage\nX\1\0\0\0aX\3\0\0\0cpuJ\xff\xff\xff\xfftQ"s,
       "is said to have -1 elements"},
      {"N)R", "what is called has another type"},
      {rebuild + "NR", "what a call is given is no tuple"},
      {"ctorch\nFloatStorage\n)R", "it calls \"torch.FloatStorage\""},
      {"ccollections\nOrderedDict\nN\x85R", "it calls \"collections.OrderedDict\""},
      {rebuild + ")R", "a tensor is described by 0 values"},
      {rebuild + "(NNNNNNtR", "the storage of a tensor has another type"},
      {rebuild + "(ctorch\nuint16\nNNNNNtR", "a tensor has no storage"},
      {tensor + "NN\x89" + hooks + "tR", "the shape of a tensor is no tuple"},
      {tensor + "N\x85)\x89" + hooks + "tR", "a size or stride of a tensor is no integer"},
      {tensor + "))N" + hooks + "tR", "values of other types than it must be"},
      {tensor + "))\x89NtR", "values of other types than it must be"},
      {tensor + "))\x89}K\1NstR", "a tensor has hooks"},
      {tensor + "K\5\x85K\1\x85\x89" + hooks + "tR", "does not lie within its storage of 4 elements"},
      {tensor + shape + hooks + "NtR", "the metadata of a tensor are no dict"},
      {tensor + shape + hooks + "}X\3\0\0\0negNstR"s, "the metadata of a tensor are not known"},
      {tensor + shape + hooks + "}X\4\0\0\0conj\x88stR"s, "the metadata of a tensor are not known"},
      {tensor + shape + hooks + "}X\1\0\0\0x\x88stR"s, "the metadata of a tensor are not known"},
      {"ctorch._utils\n_rebuild_tensor_v3\n(" + float_storage + "K\0"s + shape + hooks + "ctorch\nFloatStorage\ntR",
       "a tensor has an unknown element type"},
      {std::string(300, ']') + std::string(299, 'a'), "it is nested too deeply"},
      {std::string(300, ')') + std::string(300, '\x85'), "it is nested too deeply"},
  };
  for (const auto& [body, reason] : refusals) EXPECT_FAILS(refusal(body), FPT_ERR_FORMAT, reason) << body;
  for (const std::string& start : {""s, "\x80"s, "\x80\4N."s, "N."s})
    EXPECT_EQ(test::outcome_of([&] { (void)read_plain_pickle(start, four_numbers); }).status, FPT_ERR_FORMAT);
}

TEST(PlainPickle, NothingGrowsWithoutBound) {
  EXPECT_FAILS(refusal(std::string(6'000'000, 'N')), FPT_ERR_FORMAT, "it has too many values");
  EXPECT_FAILS(refusal(std::string(6'000'000, '(')), FPT_ERR_FORMAT, "it has too many values");
  std::string noted = "N";
  for (int i = 0; i < 5'000'000; ++i) noted += "q\1";
  EXPECT_FAILS(refusal(noted), FPT_ERR_FORMAT, "it has too many values");
  std::string doubled = ")";
  for (int i = 0; i < 30; ++i) doubled += "q\1h\1\x86";
  EXPECT_FAILS(refusal(doubled), FPT_ERR_FORMAT, "it has too many values");
}

TEST(PlainPickle, WhatIsWrittenIsReadBack) {
  c10::impl::GenericDict dict(c10::AnyType::get(), c10::AnyType::get());
  c10::List<int64_t> integers({1, -1, 300, int64_t{1} << 40, std::numeric_limits<int64_t>::min()});
  dict.insert("integers", integers);
  dict.insert("reals", c10::List<double>({0.1, -0.0, 1e300}));
  dict.insert("texts", c10::List<std::string>({"", "a", std::string(200, 'x'), "a"}));
  dict.insert("tuple", c10::ivalue::Tuple::create({c10::IValue(), c10::IValue(true), c10::IValue(false)}));
  dict.insert(int64_t{7}, "seven");
  const c10::IValue again = read_plain_pickle(fpt::direct::write_plain_pickle(dict).bytes, four_numbers);
  std::ostringstream texts[2];
  texts[0] << c10::IValue(dict), texts[1] << again;
  EXPECT_EQ(texts[0].str(), texts[1].str());
  EXPECT_TRUE(std::signbit(again.toGenericDict().at("reals").toListRef()[1].toDouble()));
}

}  // namespace
}  // namespace ftr
