// SPDX-License-Identifier: MIT
#include "direct/direct_options.hpp"

#include "support.hpp"

namespace fpt::test {
namespace {

DirectOptions options_of(const std::vector<fpt_arg>& options) {
  return direct_options(options.data(), static_cast<int32_t>(options.size()));
}

fpt_direct_optimizer optimizer_of(const char* name, const std::vector<fpt_arg>& settings) {
  return direct_optimizer(name, settings.data(), static_cast<int32_t>(settings.size()));
}

class DirectOptionsTest : public testing::Test {
 protected:
  Variable no_mode{"FTN_PYTORCH_MODE", nullptr};
};

TEST_F(DirectOptionsTest, Defaults) {
  const DirectOptions options = options_of({});
  EXPECT_FALSE(options.same_layout || options.copies_inputs || options.cast);
  EXPECT_EQ(options.mode, FPT_DIRECT_CHECKED);
  EXPECT_EQ(options.float_dtype, FPT_NONE);
  EXPECT_EQ(options.device, "");
}

TEST_F(DirectOptionsTest, EveryOptionIsRead) {
  const DirectOptions options = options_of({named("layout", in("same")), named("mode", in("safe")), named("dtype", in("float32")),
                                            named("inputs", in("copy")), named("cast", in(true)), named("flags", in(2)),
                                            named("device", in("cuda:1")), named("backend", in("direct"))});
  EXPECT_TRUE(options.same_layout && options.copies_inputs && options.cast);
  EXPECT_EQ(options.mode, FPT_DIRECT_SAFE);
  EXPECT_EQ(options.float_dtype, FPT_FLOAT32);
  EXPECT_EQ(options.flags, 2);
  EXPECT_EQ(options.device, "cuda:1");
}

TEST_F(DirectOptionsTest, DeviceFlagMeansCuda) { EXPECT_EQ(options_of({named("flags", in(1))}).device, "cuda"); }

TEST_F(DirectOptionsTest, ModeOfTheEnvironmentIsADefault) {
  const Variable mode("FTN_PYTORCH_MODE", "safe");
  EXPECT_EQ(options_of({}).mode, FPT_DIRECT_SAFE);
  EXPECT_EQ(options_of({named("mode", in("checked"))}).mode, FPT_DIRECT_CHECKED);
}

TEST_F(DirectOptionsTest, WhatMakesNoSenseIsRefusedWithWhatDoes) {
  const auto refused = [](fpt_arg option, const char* part) {
    EXPECT_FAILS(outcome_of([&] { options_of({option}); }), FPT_ERR_ARGUMENT, part);
  };
  refused(named("layout", in("sideways")), "reversed, same");
  refused(named("layout", in(1)), "must be a text");
  refused(named("mode", in("fast")), "'fast'; valid are checked, safe");
  refused(named("dtype", in("int8")), "keep, float32, float64");
  refused(named("flags", in(4)), "between 0 and 3");
  refused(named("flags", in(1.5)), "integer or logical");
  refused(named("speed", in(1)), "no option 'speed'");
  refused(named("compile", in(true)), "torch.compile");
  refused(named("compile", in("max-autotune")), "torch.compile");
  EXPECT_OK(outcome_of([] { options_of({named("compile", in(false)), named("weights_only", in(true))}); }));
  const Variable mode("FTN_PYTORCH_MODE", "quick");
  EXPECT_FAILS(outcome_of([] { options_of({}); }), FPT_ERR_ARGUMENT, "FTN_PYTORCH_MODE");
}

TEST_F(DirectOptionsTest, SettingsOfOptimizers) {
  const fpt_direct_optimizer sgd = optimizer_of("sgd", {in(0.5f), named("momentum", in(0.9)), named("nesterov", in(true))});
  EXPECT_EQ(sgd.kind, 0);
  EXPECT_EQ(sgd.lr, 0.5);
  EXPECT_EQ(sgd.momentum, 0.9);
  EXPECT_EQ(sgd.nesterov, 1);
  const fpt_direct_optimizer adamw = optimizer_of("adamw", {named("lr", in(1))});
  EXPECT_EQ(adamw.kind, 2);
  EXPECT_EQ(adamw.weight_decay, 0.01);
  EXPECT_EQ(adamw.beta2, 0.999);
  EXPECT_EQ(optimizer_of("adam", {in(1.0), named("amsgrad", in(true))}).amsgrad, 1);
}

TEST_F(DirectOptionsTest, SettingsThatMakeNoSenseAreRefused) {
  const auto refused = [](const char* name, const std::vector<fpt_arg>& settings, fpt_status status, const char* part) {
    EXPECT_FAILS(outcome_of([&] { optimizer_of(name, settings); }), status, part);
  };
  refused("lion", {in(0.1)}, FPT_ERR_HOOK, "sgd, adam, adamw");
  refused("sgd", {}, FPT_ERR_SIGNATURE, "learning rate");
  refused("sgd", {in(-0.1)}, FPT_ERR_ARGUMENT, "at least 0");
  refused("sgd", {in("fast")}, FPT_ERR_ARGUMENT, "real number");
  refused("sgd", {in(0.1), named("beta1", in(0.5))}, FPT_ERR_SIGNATURE, "'beta1'");
  refused("adam", {in(0.1), named("beta1", in(1.0))}, FPT_ERR_ARGUMENT, "less than 1");
  refused("sgd", {in(0.1), named("nesterov", in(true))}, FPT_ERR_ARGUMENT, "momentum greater than 0");
}

}  // namespace
}  // namespace fpt::test
