// SPDX-License-Identifier: MIT
#include "plugin/package/package_inputs.hpp"
#include "support.hpp"

namespace fpt::test {
namespace {

using direct::expected_inputs;

/// A check as AOTInductor writes it.
std::string check(const std::string& input, const std::string& words, const std::string& limit) {
  return "ss << \"input_handles[" + input + "]: " + words + ", \"\n << \"" + limit + ", \" << \"but got: \"\n";
}

std::string dtype(const std::string& input, const std::string& name) {
  return "int32_t arg_expected_dtype = aoti_torch_dtype_" + name + "();\nif (arg_expected_dtype != arg_dtype) {\n" +
         "ss << \"input_handles[" + input + "]: unmatched dtype, \"\n << \"expected: \" << arg_expected_dtype\n";
}

TEST(PackageInputsTest, TypesAndSizesAreThoseOfTheChecks) {
  const auto inputs =
      expected_inputs(dtype("0", "float32") + check("0", "dim value is too small at 0", "expected it to be >= 2") +
                          check("0", "dim value is too large at 0", "expected to be <= 1024") +
                          check("0", "unmatched dim value at 1", "expected: 3") +
                          check("0", "unmatched dim value at 2", "expected: 70") +
                          check("0", "unmatched stride value at 1", "expected: 9") + dtype("1", "int64"),
                      3);
  ASSERT_EQ(inputs.size(), 3u);
  EXPECT_EQ(inputs[0].dtype, "float32");
  ASSERT_EQ(inputs[0].sizes.size(), 3u);
  EXPECT_EQ(inputs[0].sizes.at(0).least, 2);
  EXPECT_EQ(inputs[0].sizes.at(0).most, 1024);
  EXPECT_EQ(inputs[0].sizes.at(1).least, 3);
  EXPECT_EQ(inputs[0].sizes.at(1).most, 3);
  EXPECT_EQ(inputs[0].sizes.at(2).most, 70);
  EXPECT_EQ(inputs[1].dtype, "int64");
  EXPECT_TRUE(inputs[1].sizes.empty());
  EXPECT_TRUE(inputs[2].dtype.empty() && inputs[2].sizes.empty());
}

TEST(PackageInputsTest, NothingIsKnownOfAnotherSource) {
  for (const std::string source :
       {"", "\"input_handles[0]: unmatched dtype", "\"input_handles[0]: unmatched dim value at ",
        "aoti_torch_dtype_ \"input_handles[0]: unmatched dtype", "\"input_handles[0]: unmatched dim value at 1, "}) {
    const auto inputs = expected_inputs(source, 1);
    EXPECT_TRUE(inputs[0].dtype.empty() && inputs[0].sizes.empty()) << source;
  }
}

}  // namespace
}  // namespace fpt::test
