// SPDX-License-Identifier: MIT
#include "arrays/result_names.hpp"
#include "support.hpp"

namespace fpt {
namespace {

using Names = std::vector<const char*>;
using Places = std::vector<int32_t>;

const CallName call{"f", "net"};

/// Places for outputs of these names; an empty name is none.
Places pair(const ResultList& results, const std::vector<std::string>& outputs) {
  static double variable = 0;
  std::vector<fpt_arg> args;
  for (const std::string& name : outputs)
    args.push_back(name.empty() ? test::out(variable) : test::named(name, test::out(variable)));
  return pair_outputs(call, results, args);
}

test::Outcome refused(const ResultList& results, const std::vector<std::string>& outputs) {
  return test::outcome_of([&] { pair(results, outputs); });
}

TEST(CallName, SaysTheModuleWhereThereIsOne) {
  EXPECT_EQ(concat(call), "f of net");
  EXPECT_EQ(concat(CallName{"f", {}}), "f");
}

TEST(PairOutputs, WithoutNamesGoesByPlace) {
  EXPECT_EQ(pair({3, {}, false}, {"", "", ""}), (Places{0, 1, 2}));
  EXPECT_EQ(pair({2, Names{"low", "high"}, true}, {"", ""}), (Places{0, 1})) << "a named tuple has places, too";
}

TEST(PairOutputs, WithNamesGoesByNameAndMayLeaveResultsOut) {
  EXPECT_EQ(pair({3, Names{"a", "b", "c"}, false}, {"c", "a"}), (Places{2, 0}));
  EXPECT_EQ(pair({2, Names{"low", "high"}, true}, {"high"}), (Places{1}));
  EXPECT_EQ(pair({2, Names{"a", "b"}, false}, {"b", "b"}), (Places{1, 1})) << "one result may go into two variables";
}

TEST(PairOutputs, NamesThatAreMissingAreToldWithThoseThereAre) {
  EXPECT_FAILS(refused({2, Names{"a", "b"}, false}, {"c"}), FPT_ERR_RESULT_NAME,
               "f of net returned no result called \"c\"; there are \"a\", \"b\"");
  EXPECT_FAILS(refused({1, Names{"a"}, false}, {"A"}), FPT_ERR_RESULT_NAME, "there is \"a\"");
  EXPECT_FAILS(refused({2, Names{nullptr, "b"}, false}, {"c"}), FPT_ERR_RESULT_NAME, "\"?\", \"b\"");
}

TEST(PairOutputs, WhereOnlyOneSideHasNamesIsRefused) {
  EXPECT_FAILS(refused({1, Names{"a"}, false}, {""}), FPT_ERR_RESULT_NAME, "the outputs need names");
  EXPECT_FAILS(refused({2, {}, false}, {"a", "b"}), FPT_ERR_RESULT_NAME, "return a dict");
  EXPECT_FAILS(refused({1, {}, false}, {"a", "b"}), FPT_ERR_RESULT_NAME, "1 result without names");
  EXPECT_FAILS(refused({1, {}, false}, {"a"}), FPT_ERR_RESULT_NAME, "1 result without names");
  EXPECT_FAILS(refused({2, Names{"a", "b"}, false}, {"a", ""}), FPT_ERR_RESULT_NAME,
               "all outputs have names or none has");
  EXPECT_FAILS(refused({2, Names{"a", "b"}, false}, {"", "a"}), FPT_ERR_RESULT_NAME,
               "all outputs have names or none has");
}

TEST(PairOutputs, CountsMustAgree) {
  EXPECT_FAILS(refused({0, {}, false}, {""}), FPT_ERR_RESULT_COUNT,
               "returned 0 results, but there is 1 output: return");
  EXPECT_FAILS(refused({1, {}, false}, {"", ""}), FPT_ERR_RESULT_COUNT,
               "returned 1 result, but there are 2 outputs: pass one for each result, or a torch_results for all");
  EXPECT_FAILS(refused({2, {}, false}, {""}), FPT_ERR_RESULT_COUNT, "returned 2 results, but there is 1 output");
  EXPECT_FAILS(refused({0, {}, false}, {"a"}), FPT_ERR_RESULT_COUNT, "returned 0 results, but there is 1 output");
}

struct ResultNamesTest : testing::Test {
  const ResultNames named{"f of net", {"flux", "heat"}}, nameless{"g", {"", ""}};
};

TEST_F(ResultNamesTest, AreFoundByIndexFromOne) {
  EXPECT_EQ(named.count(), 2);
  EXPECT_EQ(named.place(2), 1u);
  EXPECT_EQ(named.name(1), "flux");
  for (const int32_t index : {0, -1, 3, INT32_MAX, INT32_MIN})
    EXPECT_FAILS(test::outcome_of([&] { named.place(index); }), FPT_ERR_RESULT_NAME,
                 concat("f of net returned 2 results; there is no result ", index));
  EXPECT_FAILS(test::outcome_of([] { ResultNames("h", {""}).place(2); }), FPT_ERR_RESULT_NAME, "returned 1 result;");
}

TEST_F(ResultNamesTest, AreFoundByName) {
  EXPECT_EQ(named.find("heat"), 2);
  EXPECT_FAILS(test::outcome_of([&] { named.find("fog"); }), FPT_ERR_RESULT_NAME, "there are \"flux\", \"heat\"");
  EXPECT_FAILS(test::outcome_of([&] { named.find(""); }), FPT_ERR_RESULT_NAME, "called \"\"");
  EXPECT_FAILS(test::outcome_of([&] { nameless.find(""); }), FPT_ERR_RESULT_NAME, "its 2 results have no names");
}

TEST_F(ResultNamesTest, LabelSaysTheNameOrTheIndex) {
  EXPECT_EQ(named.label(2), "result \"heat\" of f of net");
  EXPECT_EQ(nameless.label(2), "result 2 of g");
}

}  // namespace
}  // namespace fpt
