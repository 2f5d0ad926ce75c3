// SPDX-License-Identifier: MIT
#include "plugin/package/tree_spec.hpp"
#include "support.hpp"

namespace fpt::test {
namespace {

using direct::names_of_inputs;
using direct::parse_tree_spec;
using direct::TreeSpec;

const std::string leaf = R"({"type": null, "context": null, "children_spec": []})";

std::string tuple_of(const std::string& children) {
  return R"({"type": "builtins.tuple", "context": "null", "children_spec": [)" + children + "]}";
}

std::string dict_of(const std::string& keys, const std::string& children) {
  return R"({"type": "builtins.dict", "context": "[)" + keys + R"(]", "children_spec": [)" + children + "]}";
}

TreeSpec parse(const std::string& spec) { return parse_tree_spec("[1, " + spec + "]", "net.pt2"); }

TEST(TreeSpecTest, Leaf) { EXPECT_TRUE(parse(leaf).is_value()); }

TEST(TreeSpecTest, TupleWithinATuple) {
  const TreeSpec spec = parse(tuple_of(leaf + ", " + tuple_of("")));
  EXPECT_EQ(spec.type, "builtins.tuple");
  ASSERT_EQ(spec.children.size(), 2u);
  EXPECT_EQ(spec.children[1].type, "builtins.tuple");
}

TEST(TreeSpecTest, KeysOfADictionary) {
  const TreeSpec spec = parse(dict_of(R"(\"sum\", \"moved\")", leaf + "," + leaf));
  EXPECT_TRUE(spec.is_dictionary());
  EXPECT_EQ(spec.keys, (std::vector<std::string>{"sum", "moved"}));
}

TEST(TreeSpecTest, NamesWithQuotes) {
  EXPECT_EQ(parse(dict_of(R"(\"a\\\"b\\\\c\")", leaf)).keys, std::vector<std::string>{R"(a"b\c)"});
  EXPECT_FAILS(outcome_of([&] { parse(dict_of(R"(\"\\u00e9\")", leaf)); }), FPT_ERR_FORMAT, "net.pt2");
}

TEST(TreeSpecTest, AnotherVersionOrADamagedTextIsRefused) {
  const std::string whole = "[1, " + tuple_of(leaf) + "]";
  EXPECT_FAILS(outcome_of([&] { parse_tree_spec("[2, " + leaf + "]", "net.pt2"); }), FPT_ERR_FORMAT, "net.pt2");
  for (std::size_t length = 0; length < whole.size(); ++length)
    EXPECT_FAILS(outcome_of([&] { parse_tree_spec(whole.substr(0, length), "net.pt2"); }), FPT_ERR_FORMAT, "net.pt2");
  EXPECT_FAILS(outcome_of([&] { parse_tree_spec(std::string(100000, '['), "net.pt2"); }), FPT_ERR_FORMAT, "net.pt2");
  std::string deep = "[1, ";
  for (int i = 0; i < 100000; ++i) deep += R"({"type": "builtins.list", "context": "null", "children_spec": [)";
  EXPECT_FAILS(outcome_of([&] { parse_tree_spec(deep, "net.pt2"); }), FPT_ERR_FORMAT, "net.pt2");
  EXPECT_FAILS(outcome_of([&] { parse(dict_of(R"(\"a\")", "")); }), FPT_ERR_FORMAT, "net.pt2");
}

std::vector<std::string> names(const std::string& arguments, const std::string& keywords) {
  return names_of_inputs(parse(tuple_of(tuple_of(arguments) + "," + keywords)), "net.pt2");
}

TEST(TreeSpecTest, NamesOfInputs) {
  const std::string none = dict_of("", ""), scale = dict_of(R"(\"scale\")", leaf);
  const std::string pair = dict_of(R"(\"b\", \"a\")", leaf + "," + leaf);
  EXPECT_EQ(names("", none), std::vector<std::string>());
  EXPECT_EQ(names(leaf + "," + leaf, scale), (std::vector<std::string>{"", "", "scale"}));
  EXPECT_EQ(names(leaf + "," + pair, scale), (std::vector<std::string>{"", "b", "a", "scale"}));
  EXPECT_EQ(names(tuple_of(leaf + "," + leaf), none), (std::vector<std::string>{"", ""}));
}

TEST(TreeSpecTest, InputsThatFortranCannotPassAreRefused) {
  const std::string none = dict_of("", ""), pair = dict_of(R"(\"a\", \"b\")", leaf + "," + leaf);
  EXPECT_FAILS(outcome_of([&] { names(tuple_of(leaf + "," + pair), none); }), FPT_ERR_FORMAT, "takes a builtins.dict");
  EXPECT_FAILS(outcome_of([&] { names(leaf, dict_of(R"(\"fields\")", pair)); }), FPT_ERR_FORMAT,
               "takes a builtins.dict");
  EXPECT_FAILS(outcome_of([&] { names(pair, dict_of(R"(\"a\")", leaf)); }), FPT_ERR_FORMAT, "two inputs called a");
  EXPECT_FAILS(outcome_of([&] { names_of_inputs(parse(leaf), "net.pt2"); }), FPT_ERR_FORMAT, "does not say");
}

}  // namespace
}  // namespace fpt::test
