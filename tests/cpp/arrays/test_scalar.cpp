// SPDX-License-Identifier: MIT
#include <limits>

#include "arrays/scalar.hpp"
#include "support.hpp"

namespace fpt {
namespace {

using test::in;
using test::out;

/// The value of a scalar input, as the alternative that it is expected to be.
template <class Wide, class Number>
Wide read(Number number) {
  return std::get<Wide>(scalar_of(test::array_arg(&number, {})));
}

TEST(Scalar, OfIntegersIsTheWidestOne) {
  EXPECT_EQ(read<int64_t>(std::numeric_limits<int8_t>::min()), -128);
  EXPECT_EQ(read<int64_t>(std::numeric_limits<int16_t>::min()), -32768);
  EXPECT_EQ(read<int64_t>(std::numeric_limits<int32_t>::min()), -2147483648LL);
  EXPECT_EQ(read<int64_t>(std::numeric_limits<int64_t>::max()), std::numeric_limits<int64_t>::max());
}

TEST(Scalar, OfRealsAndComplexNumbersIsExact) {
  EXPECT_EQ(read<double>(0.1f), static_cast<double>(0.1f));
  EXPECT_EQ(read<double>(0.1), 0.1);
  EXPECT_EQ(read<std::complex<double>>(std::complex<float>(1, -2)), std::complex<double>(1, -2));
  EXPECT_EQ(read<std::complex<double>>(std::complex<double>(0.1, 0.2)), std::complex<double>(0.1, 0.2));
}

TEST(Scalar, OfLogicalsOfEveryKindIsABool) {
  for (const int32_t kind : {FPT_BOOL, FPT_LOGICAL16, FPT_LOGICAL32, FPT_LOGICAL64})
    for (const int64_t bits : {0, 1}) {
      int64_t memory = bits;
      fpt_arg arg;
      ASSERT_EQ(describe_array(arg, &memory, kind, 0, nullptr, nullptr, FPT_IN), FPT_OK);
      EXPECT_EQ(std::get<bool>(scalar_of(arg)), bits == 1) << kind;
    }
}

TEST(Scalar, OfATextIsItsBytes) {
  const fpt_arg word = in("west");
  EXPECT_EQ(std::get<std::string_view>(scalar_of(word)), "west");
  const std::string story(500, 'x');
  EXPECT_EQ(std::get<std::string_view>(scalar_of(in(story.c_str()))), story);
}

TEST(Scalar, WithoutATypeIsADefect) {
  fpt_arg arg = in(1.0);
  arg.dtype = FPT_NONE;
  EXPECT_FAILS(test::outcome_of([&] { scalar_of(arg); }), FPT_ERR_INTERNAL, "scalar of type 0");
}

TEST(Scalar, IsAValueUnlessItIsAVariable) {
  double variable = 0;
  std::vector<double> array = {1};
  std::string text = "west";
  EXPECT_TRUE(is_value(in(1.0)));
  EXPECT_TRUE(is_value(in("west")));
  EXPECT_TRUE(is_value(out(text))) << "nothing but a string can be there";
  EXPECT_FALSE(is_value(out(variable)));
  EXPECT_FALSE(is_value(in(array)));
}

TEST(Scalar, HasTheTypeNameOfPython) {
  EXPECT_STREQ(type_name(true), "bool");
  EXPECT_STREQ(type_name(int64_t{1}), "int");
  EXPECT_STREQ(type_name(1.0), "float");
  EXPECT_STREQ(type_name(std::complex<double>(1)), "complex");
  EXPECT_STREQ(type_name(std::string_view("west")), "str");
}

}  // namespace
}  // namespace fpt
