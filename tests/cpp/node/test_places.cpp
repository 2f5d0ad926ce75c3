// SPDX-License-Identifier: MIT
#include "node/places.hpp"
#include "support.hpp"

namespace fpt {
namespace {

using test::in;
using test::out;

/// What calls of a function with arrays of so many columns have in common.
std::string form(const Request& request, std::size_t columns) {
  std::vector<double> x(3 * columns), y(columns);
  const auto n = static_cast<int64_t>(columns);
  fpt_arg input = test::array_arg(x.data(), {3, n}), output = test::array_arg(y.data(), {n}, FPT_OUT);
  return form_of(request, {&input, 1}, {&output, 1});
}

TEST(Places, AreThoseOfCallsWithTheSameShapes) {
  const Request call{Wish::call, "f"};
  EXPECT_FALSE(form(call, 4).empty());
  EXPECT_EQ(form(call, 4), form(call, 4));
  EXPECT_NE(form(call, 4), form(call, 5));
  EXPECT_NE(form(call, 4), form({Wish::call, "g"}, 4));
}

TEST(Places, AreNotForCallsWhoseResultsComeBehindTheAnswer) {
  EXPECT_EQ(form({Wish::call, "f", 0, 1}, 4), "");
  Request of_a_list{Wish::call, "f"};
  of_a_list.is_list = true;
  EXPECT_EQ(form(of_a_list, 4), "");
}

}  // namespace
}  // namespace fpt
