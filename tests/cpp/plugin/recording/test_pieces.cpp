// SPDX-License-Identifier: MIT
#include <ATen/ops/tensor.h>

#include <limits>
#include <random>

#include "base/rank.hpp"
#include "ftr/outcome.hpp"
#include "plugin/recording/pieces.hpp"

namespace fpt::direct {
namespace {

c10::IValue hole(const std::string& kind) { return c10::ivalue::Tuple::create({c10::IValue(kind)}); }
c10::IValue hole(const std::string& kind, const c10::IValue& name) {
  return c10::ivalue::Tuple::create({c10::IValue(kind), name});
}
c10::IValue pieces(const std::vector<c10::IValue>& values) {
  c10::impl::GenericList list(c10::AnyType::get());
  for (const c10::IValue& value : values) list.push_back(value);
  return list;
}

TEST(Pieces, HolesAreFilledInTheirOrder) {
  HoleValues values;
  values.numbers = {{"lr", 1e-3}, {"beta", 1}};
  values.generator = at::tensor({104, 105, 33, 255}, at::kByte);
  values.written = "2030-01-31T12:00:00+0100";
  values.host = "no\"de\\1\n\xc3\xa9\xff";
  values.rank = 2, values.ranks = 8, values.rank_of_job = 5;
  values.job = "a.1";
  const c10::IValue text =
      pieces({"{",    hole("number", "lr"), " ",    hole("number", "beta"), " \"", hole("generator"),
              "\" ",  hole("step"),         " ",    hole("written"),        " ",   hole("host"),
              " ",    hole("rank"),         " of ", hole("ranks"),          " ",   hole("rank_of_job"),
              " in ", hole("job"),          "}"});
  const std::string begin = R"({0.001 1.0 "aGkh/w==" )";
  const std::string end = R"( "2030-01-31T12:00:00+0100" "no\"de\\1\u000a)"
                          "\xc3\xa9"
                          R"(\\xff" 2 of 8 5 in "a.1"})";
  EXPECT_EQ(filled(text, values), begin + "null" + end);
  values.step = 12;
  EXPECT_EQ(filled(text, values), begin + "12" + end);
  EXPECT_EQ(filled(pieces({}), values), "");
}

TEST(Pieces, ATextIsTakenApartWhereItsHolesAre) {
  HoleValues values;
  values.numbers = {{"lr", 1e-3}};
  const ftr::FilledText whole =
      filled_with_holes(pieces({"{", hole("number", "lr"), ", ", hole("number", "lr"), "}"}), values);
  EXPECT_EQ(whole.text, "{0.001, 0.001}");
  values.numbers = {{"lr", 0.5}};
  EXPECT_EQ(filled(ftr::pieces_of(whole), values), "{0.5, 0.5}");
  EXPECT_EQ(filled(ftr::pieces_of({"no holes", pieces({})}), values), "no holes");
  const auto place = [](int64_t begin, int64_t end) {
    return pieces({c10::ivalue::Tuple::create({begin, end, hole("generator")})});
  };
  const auto refusal = [](const c10::IValue& holes) {
    return ftr::test::outcome_of([&] { (void)ftr::pieces_of({"text", holes}); });
  };
  for (const c10::IValue& holes : {place(3, 5), place(-1, 2), place(3, 2), place(2, INT64_MAX)})
    EXPECT_EQ(refusal(holes).status, FPT_ERR_FORMAT);
  EXPECT_EQ(refusal(pieces({hole("generator")})).status, FPT_ERR_FORMAT);
  EXPECT_EQ(refusal(pieces({"text"})).status, FPT_ERR_FORMAT);
  EXPECT_EQ(refusal({}).status, FPT_ERR_FORMAT);
}

TEST(Pieces, Base64IsThatOfTheStandard) {
  const std::vector<std::string> wanted = {"", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"};
  const std::vector<int64_t> bytes = {'f', 'o', 'o', 'b', 'a', 'r'};  // RFC 4648, section 10
  for (std::size_t count = 0; count < wanted.size(); ++count) {
    HoleValues values;
    values.generator = at::tensor(at::IntArrayRef(bytes.data(), count), at::kByte);
    EXPECT_EQ(filled(pieces({hole("generator")}), values), wanted[count]);
  }
}

TEST(Pieces, NumbersReadBackTheSameAndAreReal) {
  EXPECT_EQ(json_number(1), "1.0");
  EXPECT_EQ(json_number(0.1), "0.1");
  EXPECT_EQ(json_number(1e-4), "1e-04");
  EXPECT_EQ(json_number(-0.0), "-0.0");
  EXPECT_EQ(json_number(1e300), "1e+300");
  EXPECT_EQ(json_number(123456789), "123456789.0");
  EXPECT_EQ(json_number(std::numeric_limits<double>::infinity()), "Infinity");
  EXPECT_EQ(json_number(-std::numeric_limits<double>::infinity()), "-Infinity");
  EXPECT_EQ(json_number(std::numeric_limits<double>::quiet_NaN()), "NaN");
  std::mt19937_64 random(1);
  for (int i = 0; i < 10000; ++i) {
    const uint64_t bits = random();
    double value = 0;
    std::memcpy(&value, &bits, sizeof value);
    if (!std::isfinite(value)) continue;
    const std::string text = json_number(value);
    EXPECT_EQ(std::strtod(text.c_str(), nullptr), value) << text;
    EXPECT_NE(text.find_first_of(".e"), std::string::npos) << text;
  }
}

TEST(Pieces, ThisProcessIsTold) {
  const test::Variable rank("PMI_RANK", "3"), size("PMI_SIZE", "4");
  const HoleValues values = HoleValues::of_this_process({1, 2});
  EXPECT_EQ(values.written.size(), std::string("2030-01-31T12:00:00+0100").size());
  EXPECT_FALSE(values.host.empty());
  EXPECT_EQ(values.rank, 1);
  EXPECT_EQ(values.ranks, 2);
  EXPECT_EQ(values.rank_of_job, 3);
  EXPECT_EQ(values.job, job());
  EXPECT_EQ(filled(pieces({hole("job")}), {}), "null");
}

TEST(Pieces, OtherPiecesAreRefused) {
  const auto refusal = [](const c10::IValue& text) { return ftr::test::outcome_of([&] { (void)filled(text, {}); }); };
  EXPECT_FAILS(refusal("text"), FPT_ERR_FORMAT, "its text is no list of pieces");
  EXPECT_FAILS(refusal(pieces({int64_t{1}})), FPT_ERR_FORMAT, "neither a text nor a hole");
  EXPECT_FAILS(refusal(pieces({hole("secret")})), FPT_ERR_FORMAT, "a hole for \"secret\"");
  EXPECT_FAILS(refusal(pieces({hole("step", "x")})), FPT_ERR_FORMAT, "a hole for \"step\"");
  EXPECT_FAILS(refusal(pieces({hole("number")})), FPT_ERR_FORMAT, "a hole for \"number\"");
  EXPECT_FAILS(refusal(pieces({hole("number", int64_t{1})})), FPT_ERR_FORMAT, "a hole that has no name");
  EXPECT_FAILS(refusal(pieces({hole("number", "lr")})), FPT_ERR_FORMAT, "the number lr, which it does not have");
  EXPECT_FAILS(refusal(pieces({hole("generator")})), FPT_ERR_FORMAT, "the state of a generator");
  EXPECT_FAILS(refusal(pieces({c10::ivalue::Tuple::create(std::vector<c10::IValue>())})), FPT_ERR_FORMAT, "no name");
}

}  // namespace
}  // namespace fpt::direct
