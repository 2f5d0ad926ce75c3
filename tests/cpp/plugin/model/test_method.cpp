// SPDX-License-Identifier: MIT
/// Arguments by the signature of a method.
#include "plugin/loaded.hpp"

namespace fpt::test {
namespace {

TEST(PluginMethod, ScalarsFollowTheRulesOfPython) {
  Loaded model("two");
  std::vector<float> x = {1}, y = {2};
  double factor = 3;
  for (const fpt_arg& scale : {in(3), in(3.0f), out(factor)}) {
    ASSERT_OK(model.call(nullptr, {in(x), in(y), scale}));
    EXPECT_EQ(model.at<float>(0), 7);
  }
  ASSERT_OK(model.call(nullptr, {in(x), in(y)}));
  EXPECT_EQ(model.at<float>(0), 3) << "the default";
  EXPECT_FAILS(model.call(nullptr, {in(x), in(y), in("big")}), FPT_ERR_PYTHON, "'scale', but input 3 is str");
  EXPECT_FAILS(model.call("scalars", {in(1.5), in("a")}), FPT_ERR_PYTHON,
               "'int' for its argument 'n', but input 1 is float");
  EXPECT_FAILS(model.call("scalars", {in(x), in("a")}), FPT_ERR_PYTHON, "float32 array of shape (1,)");
}

TEST(PluginMethod, ArgumentsGoByNameAndBySignature) {
  Loaded model("two");
  std::vector<float> x = {1}, y = {2};
  ASSERT_OK(model.call(nullptr, {in(x), named("scale", in(10.0)), named("b", in(y))}));
  EXPECT_EQ(model.at<float>(0), 21);
  const std::string defined = "the model two defines forward(a, b, scale=1.)";
  const auto refused = [&](std::vector<fpt_arg> inputs, const std::string& reason) {
    const Outcome outcome = model.call(nullptr, std::move(inputs));
    EXPECT_FAILS(outcome, FPT_ERR_SIGNATURE, defined);
    EXPECT_FAILS(outcome, FPT_ERR_SIGNATURE, reason);
  };
  refused({}, "is called with no arguments: missing a required argument: 'a'");
  refused({in(x), named("a", in(y))}, "multiple values for argument 'a'");
  refused({in(x), named("c", in(y))},
          "(float32 array of shape (1,), c=float32 array of shape (1,)): got an unexpected keyword argument 'c'");
  refused({in(x), in(y), in(1.0), in(2.0)}, "too many positional arguments");
}

TEST(PluginMethod, ADictionaryIsFilledByNames) {
  Loaded model("entries");
  std::vector<float> x = {5}, y = {2};
  ASSERT_OK(model.call(nullptr, {named("b", in(y)), named("a", in(x))}));
  EXPECT_EQ(model.at<float>(0), 3);
  EXPECT_FAILS(model.call(nullptr, {in(x), in(y)}), FPT_ERR_SIGNATURE, "the model takes a dictionary");
  EXPECT_FAILS(model.call(nullptr, {named("a", in(x)), named("b", in("text"))}), FPT_ERR_PYTHON,
               "'b', but input 2 (\"b\")");
}

}  // namespace
}  // namespace fpt::test
