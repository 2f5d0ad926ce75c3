// SPDX-License-Identifier: MIT
/// Inputs that models cannot use: an error in the end, whatever torch looks at to describe it. The test runs with freed
/// memory overwritten (MALLOC_PERTURB_), so that nothing of what freezing a model deletes can be read unnoticed.
#include <map>

#include "plugin/loaded.hpp"

namespace fpt::test {
namespace {

std::vector<std::string> zoo() {
  std::vector<std::string> names;
  for (const auto& file : std::filesystem::directory_iterator("."))
    if (const std::string stem = file.path().stem().string(); stem.rfind("direct_zoo_", 0) == 0)
      names.push_back(stem.substr(std::string("direct_").size()));
  std::sort(names.begin(), names.end());
  return names;
}

TEST(PluginFailure, WrongKindsAndShapesAreErrorsInEveryForm) {
  std::vector<float> right(32 * 16, 0.5f);
  std::vector<double> wide(32 * 16, 0.5);
  std::vector<int64_t> whole(32 * 16, 1);
  const std::map<std::string, fpt_arg> wrong = {{"real64", in(wide, {16, 32})},
                                                {"int64", in(whole, {16, 32})},
                                                {"transposed", in(right, {32, 16})},
                                                {"five axes", in(right, {16, 2, 2, 2, 4})}};
  ASSERT_GE(zoo().size(), 40u);
  for (const std::string& name : zoo())
    for (const bool training : {false, true}) {
      Settings options;
      options.training = training;
      for (const auto& [what, input] : wrong) {
        Loaded model(name, options);
        for (int call = 0; call < 4; ++call) {
          // the first call, the frozen form, and what torch has made of either
          const Outcome outcome = model.call(nullptr, {input});
          if (outcome.status == FPT_OK) break;  // some can
          EXPECT_FAILS(outcome, FPT_ERR_PYTHON, "ftn_pytorch_forward of " + name) << what;
          EXPECT_OK(model.call(nullptr, {in(right, {16, 32})})) << name;
        }
      }
    }
}

TEST(PluginFailure, RealArraysOfTheOtherPrecisionAreToldWithTheCure) {
  Loaded model("mlp_eval");
  std::vector<double> wide(32, 0.5);
  std::vector<float> right(32, 0.5f), target(8, 1);
  const std::string told =
      "It was called with (float64 array of shape (2, 16)). The parameters of the model are float32: "
      "load(..., dtype=\"float32\") converts real arrays on their way in.";
  for (int call = 0; call < 3; ++call) {
    EXPECT_FAILS(model.call(nullptr, {in(wide, {16, 2})}), FPT_ERR_PYTHON, told);
    const Outcome turned = model.call(nullptr, {in(right, {2, 16})});
    EXPECT_FAILS(turned, FPT_ERR_PYTHON, "\nIt was called with (float32 array of shape (16, 2)).");
    EXPECT_EQ(turned.text.find("dtype="), std::string::npos) << turned.text;
  }
  const OptimizerSettings still{0, 0, 0, 0, 0, 0, 0, 0, 0};
  ASSERT_OK(model.create_optimizer(still));
  EXPECT_FAILS(model.train(in(wide, {16, 2}), in(target, {4, 2})), FPT_ERR_PYTHON, told);
  Settings options;
  options.real_dtype = FPT_FLOAT32;
  Loaded converting("mlp_eval", options);
  ASSERT_OK(converting.call(nullptr, {in(wide, {16, 2})}));
}

TEST(PluginFailure, TheLineOfTheModelIsTold) {
  Loaded model("zoo_residual_evaluation");
  std::vector<float> wrong(2 * 4, 0.5f);
  for (int call = 0; call < 3; ++call)
    EXPECT_FAILS(model.call(nullptr, {in(wrong, {4, 2})}), FPT_ERR_PYTHON, "x0 = torch.add(x, (_0).forward(x, ))");
}

TEST(PluginFailure, MissingMemoryHasItsOwnStatus) {
  Loaded model("two");
  for (int call = 0; call < 3; ++call)
    EXPECT_FAILS(model.call("ones", {in(int64_t{1} << 48)}), FPT_ERR_MEMORY, "you tried to allocate 1125899906842624");
  EXPECT_OK(model.call("ones", {in(int64_t{3})}));
}

}  // namespace
}  // namespace fpt::test
