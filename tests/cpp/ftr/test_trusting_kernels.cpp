// SPDX-License-Identifier: MIT
/// Kernels that take the memory behind their tensors for granted get what they need, or are not called.
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/ones.h>

#include "ftr/outcome.hpp"
#include "ftr/trusting_kernels.hpp"

namespace ftr::kernels {
namespace {

using c10::IValue;
using Tensors = std::vector<at::Tensor>;
using torch::jit::Stack;

/// Throws what is wrong with the arguments, and calls nothing.
void look_at(const std::string& name, const Stack& stack) {
  const auto handle = c10::Dispatcher::singleton().findSchemaOrThrow(("aten::" + name).c_str(), "");
  const Check check = check_of("aten::" + name);
  ASSERT_NE(check, nullptr) << name;
  check(handle.schema(), stack);
}

std::string refusal(const std::string& name, const Stack& stack) {
  try {
    look_at(name, stack);
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  }
  return "";
}

/// Whether a text has a part.
testing::AssertionResult has(const std::string& text, const std::string& part) {
  if (text.find(part) != std::string::npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "\"" << text << "\" lacks \"" << part << "\"";
}

at::Tensor ones() { return at::ones({4, 3}); }
at::Tensor section() { return at::ones({4, 6}).slice(1, 0, 3); }

Stack sgd(const Tensors& parameters, const Tensors& gradients, const Tensors& momenta = {}, double momentum = 0,
          const IValue& scale = {}) {
  return {parameters, gradients, momenta, 0.0, momentum, 0.1, 0.0, false, false, false, scale, IValue()};
}

Stack adam(const Tensors& steps, const Tensors& largest, bool amsgrad) {
  const Tensors alike = {ones()};
  return {alike, alike, alike, alike,   largest, steps,    IValue(0.1), 0.9,
          0.99,  0.0,   1e-8,  amsgrad, false,   IValue(), IValue()};
}

TEST(TrustingKernels, OfOptimizersGetTensorsThatAreLaidOutAlike) {
  EXPECT_EQ(refusal("_fused_sgd_", sgd({ones(), ones().t()}, {ones(), ones().t()})), "");
  EXPECT_EQ(refusal("_fused_sgd_", sgd({ones()}, {ones()}, {ones()}, 0.9)), "");
  EXPECT_EQ(refusal("_fused_adam_", adam({at::ones({})}, {}, false)), "");
  EXPECT_EQ(refusal("_fused_adamw_", adam({at::ones({})}, {ones()}, true)), "");
  const Tensors others[] = {{at::ones({4})},
                            {at::ones({3, 4}).t()},
                            {ones().to(at::kDouble)},
                            {section()},
                            {ones().expand({4, 3}).select(0, 0).expand({4, 3})}};
  for (const Tensors& gradient : others)
    EXPECT_TRUE(has(refusal("_fused_sgd_", sgd({ones()}, gradient)), "grads has another tensor than parameter 1"));
  EXPECT_TRUE(has(refusal("_fused_sgd_", sgd({section()}, {section()})), "shares its memory"));
  EXPECT_TRUE(has(refusal("_fused_sgd_", sgd({ones(), ones()}, {ones()})), "grads has 1 tensors for 2 parameters"));
  EXPECT_TRUE(has(refusal("_fused_sgd_", sgd({ones()}, {ones()}, {}, 0.9)), "momentum_buffer_list has 0 tensors"));
  EXPECT_TRUE(has(refusal("_fused_sgd_", sgd({ones()}, {ones()}, {}, 0, at::ones({0}))), "is not one number"));
  EXPECT_TRUE(has(refusal("_fused_adam_", adam({at::ones({0})}, {}, false)), "state_steps has another"));
  EXPECT_TRUE(has(refusal("_fused_adam_", adam({at::ones({})}, {}, true)), "max_exp_avg_sqs has 0 tensors"));
}

TEST(TrustingKernels, OfViewsSeeTheMemoryOfTheirTensor) {
  const auto view = [](std::vector<int64_t> sizes, std::vector<int64_t> strides) {
    return refusal("_reshape_alias", {at::ones({12}).slice(0, 2), std::move(sizes), std::move(strides)});
  };
  EXPECT_EQ(view({2, 5}, {5, 1}), "");
  EXPECT_EQ(view({0, 100}, {100, 1}), "");
  EXPECT_EQ(view({100}, {0}), "");
  for (const auto& [sizes, strides] : {std::pair<std::vector<int64_t>, std::vector<int64_t>>{{11}, {1}},
                                       {{2, 5}, {6, 1}},
                                       {{int64_t{1} << 62}, {4}},
                                       {{3}, {int64_t{1} << 62}},
                                       {{3}, {-1}},
                                       {{-1}, {1}}})
    EXPECT_TRUE(has(view(sizes, strides), "sees more than the memory"));
  EXPECT_TRUE(has(view({2, 5}, {1}), "2 sizes and 1 strides"));
}

TEST(TrustingKernels, OthersLookThemselves) { EXPECT_EQ(check_of("aten::mm"), nullptr); }

}  // namespace
}  // namespace ftr::kernels
