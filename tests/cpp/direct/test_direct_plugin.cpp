// SPDX-License-Identifier: MIT
/// Opening the plug-in that lies beside this program. What speaks against it is in tests/direct/test_choice.py.
#include <thread>

#include "direct/torch_side.hpp"
#include "support.hpp"

namespace fpt {
namespace {

TEST(DirectPlugin, IsOpenedOnceForAllThreads) {
  std::vector<TorchSide*> seen(8);
  std::vector<std::thread> threads;
  for (TorchSide*& one : seen) threads.emplace_back([&one] { one = &torch_side(); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(seen, std::vector<TorchSide*>(8, &torch_side()));
}

std::unique_ptr<Runner> loaded(const std::string& file) {
  return torch_side().load(file, ModelKind::torchscript, {}, {});
}

TEST(DirectPlugin, ItsFailuresAreThoseOfTheLibrary) {
  EXPECT_FAILS(test::outcome_of([] { loaded("/nowhere/none.pt"); }), FPT_ERR_FORMAT, "/nowhere/none.pt cannot be read");
}

TEST(DirectPlugin, WhatLibtorchThrowsIsAFailureOfTheLibrary) {
  std::vector<float> x = {1, 2}, y = {1, 2, 3};
  const auto shown = [](std::vector<float>& values) {
    return torch_side().engine().tensor_of(array_of(test::in(values)), nullptr, false);
  };
  const TensorPtr one = shown(x), other = shown(y);
  EXPECT_FAILS(
      test::outcome_of([&] { torch_side().engine().operate(FPT_ADD, one.get(), other.get(), nullptr, false); }),
      FPT_ERR_PYTHON, "RuntimeError: The size of tensor a (2) must match the size of tensor b (3)");
  fpt_arg negative = test::in(-1);
  std::vector<fpt_arg> inputs = {negative};
  EXPECT_FAILS(test::outcome_of([&] { torch_side().functions(false)->run({"eye", inputs}); }), FPT_ERR_PYTHON,
               "eye of torch: RuntimeError: n must be greater or equal to 0, got -1");
}

TEST(DirectPlugin, ItsWarningsAreThoseOfTheLibrary) {
  static std::string warned;
  fpt_on_warning([](const char* text, int64_t length) { warned.append(text, static_cast<std::size_t>(length)); });
  std::vector<float> x = {1};
  fpt_arg input = test::in(x);
  loaded("direct_counter.pt")->run({"keep", {&input, 1}});
  fpt_on_warning(nullptr);
  EXPECT_NE(warned.find("keep of direct_counter kept input 1"), std::string::npos) << warned;
}

}  // namespace
}  // namespace fpt
