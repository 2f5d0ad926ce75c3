// SPDX-License-Identifier: MIT
#include "direct/tree_spec.hpp"

#include "support.hpp"

namespace fpt::test {
namespace {

using direct::parse_tree_spec;
using direct::TreeSpec;

const std::string leaf = R"({"type": null, "context": null, "children_spec": []})";

std::string tuple_of(const std::string& children) {
  return R"({"type": "builtins.tuple", "context": "null", "children_spec": [)" + children + "]}";
}

TreeSpec parse(const std::string& spec) { return parse_tree_spec("[1, " + spec + "]", "net.pt2"); }

TEST(TreeSpecTest, Leaf) { EXPECT_EQ(parse(leaf).kind, TreeSpec::Kind::leaf); }

TEST(TreeSpecTest, TupleWithinATuple) {
  const TreeSpec spec = parse(tuple_of(leaf + ", " + tuple_of("")));
  EXPECT_EQ(spec.kind, TreeSpec::Kind::tuple);
  ASSERT_EQ(spec.children.size(), 2u);
  EXPECT_EQ(spec.children[1].kind, TreeSpec::Kind::tuple);
}

TEST(TreeSpecTest, KeysOfADictionary) {
  const TreeSpec spec =
      parse(R"({"type": "builtins.dict", "context": "[\"sum\", \"moved\"]", "children_spec": [)" + leaf + "," + leaf + "]}");
  EXPECT_EQ(spec.kind, TreeSpec::Kind::dict);
  EXPECT_EQ(spec.keys, (std::vector<std::string>{"sum", "moved"}));
}

TEST(TreeSpecTest, AnotherVersionOrADamagedTextIsRefused) {
  const std::string whole = "[1, " + tuple_of(leaf) + "]";
  EXPECT_FAILS(outcome_of([&] { parse_tree_spec("[2, " + leaf + "]", "net.pt2"); }), FPT_ERR_FORMAT, "net.pt2");
  for (std::size_t length = 0; length < whole.size(); ++length)
    EXPECT_FAILS(outcome_of([&] { parse_tree_spec(whole.substr(0, length), "net.pt2"); }), FPT_ERR_FORMAT, "net.pt2");
  EXPECT_FAILS(outcome_of([&] { parse_tree_spec(std::string(100000, '['), "net.pt2"); }), FPT_ERR_FORMAT, "net.pt2");
  EXPECT_FAILS(outcome_of([&] { parse(R"({"type": "builtins.dict", "context": "[\"a\"]", "children_spec": []})"); }),
               FPT_ERR_FORMAT, "net.pt2");
}

}  // namespace
}  // namespace fpt::test
