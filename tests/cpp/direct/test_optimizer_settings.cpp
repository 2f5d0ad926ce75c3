// SPDX-License-Identifier: MIT
#include "direct/optimizer_settings.hpp"
#include "support.hpp"

namespace fpt::test {
namespace {

OptimizerSettings optimizer_of(const char* name, std::vector<fpt_arg> settings) {
  return optimizer_settings(name, settings);
}

TEST(OptimizerSettings, AreThoseOfTorch) {
  const OptimizerSettings sgd =
      optimizer_of("sgd", {in(0.5f), named("momentum", in(0.9)), named("nesterov", in(true))});
  EXPECT_EQ(sgd.kind, 0);
  EXPECT_EQ(sgd.lr, 0.5);
  EXPECT_EQ(sgd.momentum, 0.9);
  EXPECT_EQ(sgd.nesterov, 1);
  EXPECT_EQ(sgd.dampening, 0);
  EXPECT_EQ(optimizer_of("sgd", {in(0.5), named("dampening", in(-0.25))}).dampening, -0.25);
  const OptimizerSettings adamw = optimizer_of("adamw", {named("lr", in(1))});
  EXPECT_EQ(adamw.kind, 2);
  EXPECT_EQ(adamw.weight_decay, 0.01);
  EXPECT_EQ(adamw.beta2, 0.999);
  EXPECT_EQ(optimizer_of("adam", {in(1.0), named("amsgrad", in(true))}).amsgrad, 1);
}

TEST(OptimizerSettings, ThatMakeNoSenseAreRefused) {
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
  refused("sgd", {in(0.1), named("momentum", in(0.9)), named("dampening", in(0.5)), named("nesterov", in(true))},
          FPT_ERR_ARGUMENT, "no dampening");
  refused("adam", {in(0.1), named("dampening", in(0.5))}, FPT_ERR_SIGNATURE, "'dampening'");
}

}  // namespace
}  // namespace fpt::test
