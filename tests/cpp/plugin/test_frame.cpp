// SPDX-License-Identifier: MIT
/// Arguments as tensors that are kept between calls, and what is checked after a call.
#include <atomic>
#include <thread>

#include "plugin/loaded.hpp"

namespace fpt::test {
namespace {

TEST(PluginFrame, NewContentsOfAKnownArrayAreSeen) {
  Loaded model("weighted");
  std::vector<double> x = {1, 2};
  for (int i = 0; i < 4; ++i) {
    x[1] = i;
    ASSERT_OK(model.call(nullptr, {in(x)}));
    EXPECT_EQ(static_cast<double*>(model.array().data)[1], 2 * i);
  }
}

TEST(PluginFrame, KeptInputIsReportedOnceAndNotUsedAgain) {
  static std::string warned;
  fpt_on_warning([](const char* text, int64_t length) { warned.append(text, static_cast<std::size_t>(length)); });
  Loaded model("counter");
  std::vector<float> x = {1, 2};
  ASSERT_OK(model.call("keep", {in(x)}));
  EXPECT_NE(warned.find("keep of counter kept input 1"), std::string::npos) << warned;
  warned.clear();
  ASSERT_OK(model.call("keep", {in(x)}));
  EXPECT_EQ(warned, "");
  fpt_on_warning(nullptr);
}

TEST(PluginFrame, AReturnedInputIsNotKept) {
  static std::string warned;
  fpt_on_warning([](const char* text, int64_t length) { warned.append(text, static_cast<std::size_t>(length)); });
  std::vector<float> x = {1, 2, 3, 4, 5, 6};
  for (const char* name : {"passing", "turned", "sliced", "pair"}) {
    Loaded model(name);
    ASSERT_OK(model.call(nullptr, {in(x, {3, 2})})) << name;
    EXPECT_EQ(warned, "") << name;
  }
  fpt_on_warning(nullptr);
}

TEST(PluginFrame, WhatAModelDoesToItsInputIsGoneInTheNextCall) {
  fpt_on_warning([](const char*, int64_t) {});  // of inputs that are kept
  Loaded model("meddler");
  std::vector<float> x = {1, 2, 3, 4, 5, 6};
  for (const char* action : {"turn", "add_axis", "resize", "point_elsewhere", "want_gradient", "leave_gradient", "keep",
                             "keep_view", "keep_graph"})
    for (int i = 0; i < 5; ++i) {
      x[5] = static_cast<float>(i);
      ASSERT_OK(model.call(action, {out(x, {3, 2})})) << action;
      const auto* found = static_cast<float*>(model.array().data);
      const std::vector<float> expected = {15 + x[5], 223, 0,
                                           2};  // the sum, (2,3) of rank 2, no gradient, in this order
      EXPECT_EQ(std::vector<float>(found, found + 4), expected) << action << ", call " << i;
      ASSERT_OK(model.call(nullptr, {in(x, {3, 2})})) << action;
      const auto* after = static_cast<float*>(model.array().data);
      EXPECT_EQ(std::vector<float>(after, after + 4), expected) << "forward after " << action << ", call " << i;
    }
  fpt_on_warning(nullptr);
}

TEST(PluginFrame, AnInputThatIsChangedUnaskedIsRefusedInEveryCall) {
  for (const bool is_safe : {false, true}) {
    Settings options;
    options.safe = is_safe;
    Loaded model("meddler", options);
    std::vector<float> x = {1, 2, 3, 4, 5, 6};
    for (int i = 0; i < 5; ++i)
      EXPECT_FAILS(model.call("turn", {in(x, {3, 2})}), FPT_ERR_INPUT_MODIFIED, "pass it so") << "call " << i;
  }
}

TEST(PluginTensors, MoreArraysThanAreKeptTakeTurns) {
  Loaded model("weighted");
  std::vector<std::vector<float>> arrays(200, std::vector<float>(2));
  for (int round = 0; round < 2; ++round)
    for (std::size_t i = 0; i < arrays.size(); ++i) {
      arrays[i][1] = static_cast<float>(i);
      ASSERT_OK(model.call(nullptr, {in(arrays[i])}));
      ASSERT_EQ(model.at<float>(1), static_cast<float>(2 * i)) << "array " << i;
    }
}

TEST(PluginTensors, OneAddressMayHaveAnotherShapeStrideOrType) {
  Loaded model("weighted");
  std::vector<double> x = {1, 2, 3, 4, 5, 6};
  for (int i = 0; i < 3; ++i) {
    ASSERT_OK(model.call(nullptr, {in(x)}));
    EXPECT_EQ(model.at<double>(5), 36);
    ASSERT_OK(model.call(nullptr, {in(x, {2, 3})}));
    EXPECT_EQ(model.at<double>(5), 12);
    ASSERT_OK(model.call(nullptr, {array_arg(x.data(), {3}, FPT_IN, {16})}));
    EXPECT_EQ(model.at<double>(2), 15);
    ASSERT_OK(model.call(nullptr, {in(x, {3})}));
    EXPECT_EQ(model.at<double>(2), 9);
    ASSERT_OK(model.call(nullptr, {array_arg(reinterpret_cast<int64_t*>(x.data()), {0})}));
    EXPECT_EQ(model.array().dtype, FPT_INT64);
    EXPECT_EQ(model.array().extents[0], 0);
  }
}

TEST(PluginTensors, BackwardArraysAreRefusedUnlessTheyAreConverted) {
  std::vector<double> x = {1, 2, 3};
  const fpt_arg backward = array_arg(&x[2], {3}, FPT_IN, {-8});
  Loaded model("weighted");
  EXPECT_FAILS(model.call(nullptr, {backward}), FPT_ERR_STRIDE, "input 1 of ftn_pytorch_forward of weighted: ");
  Settings options;
  options.real_dtype = FPT_FLOAT32;
  Loaded converting("weighted", options);
  ASSERT_OK(converting.call(nullptr, {backward}));
  EXPECT_EQ(converting.at<float>(2), 3);
}

TEST(PluginFrame, WhatIsConvertedGoesBackIntoAnOutputOnly) {
  Settings options;
  options.real_dtype = FPT_FLOAT32;
  Loaded model("two", options);
  for (int i = 0; i < 4; ++i) {
    std::vector<double> x = {1, 2, 3}, y = x;
    ASSERT_OK(model.call("adds", {array_arg(&x[2], {3}, FPT_OUT, {-8})}));
    EXPECT_EQ(x, (std::vector<double>{2, 3, 4}));
    ASSERT_OK(model.call("adds", {in(y)})) << "a copy may be changed";
    EXPECT_EQ(y, (std::vector<double>{1, 2, 3}));
  }
}

TEST(PluginFrame, NothingGoesBackWhereAnInputIsRefused) {
  Settings options;
  options.real_dtype = FPT_FLOAT32;
  Loaded model("passing", options);
  std::vector<double> converted = {1, 2};
  std::vector<float> plain = {1, 2};
  EXPECT_FAILS(model.call("changed_both", {out(converted), in(plain)}), FPT_ERR_INPUT_MODIFIED, "input 2");
  EXPECT_EQ(converted, (std::vector<double>{1, 2}));
  ASSERT_OK(model.call("changed_both", {out(converted), out(plain)}));
  EXPECT_EQ(converted, (std::vector<double>{2, 3}));
}

TEST(PluginFrame, WhatHasAnOwnerMayBeChanged) {
  Loaded model("passing");
  for (int i = 0; i < 4; ++i) {
    std::vector<double> x = {1, 2};
    fpt_arg owned = in(x);
    owned.handle = 1;
    ASSERT_OK(model.call("changed", {owned}));
    EXPECT_EQ(x, (std::vector<double>{2, 4})) << "it is not copied";
    EXPECT_FAILS(model.call("changed", {in(x)}), FPT_ERR_INPUT_MODIFIED, "pass it so");
  }
}

TEST(PluginFrame, WhatHasAnOwnerIsCopiedWhereItMayBeKept) {
  Loaded model("keeper");
  std::vector<double> x = {1, 2};
  fpt_arg owned = in(x);
  owned.handle = 1;
  ASSERT_OK(model.call(nullptr, {owned}));
  x = {8, 9};
  ASSERT_OK(model.call("kept", {}));
  EXPECT_EQ(model.at<double>(1), 2);
}

TEST(PluginFrame, CopiesThatAResultSharesAreNotOverwritten) {
  Settings options;
  options.copies_inputs = true;
  Loaded model("two", options);
  std::vector<float> x = {1, 2};
  ASSERT_OK(model.call("turned", {in(x, {1, 2})}));
  const auto first = model.answer;
  x = {3, 4};
  ASSERT_OK(model.call("turned", {in(x, {1, 2})}));
  EXPECT_EQ(static_cast<const float*>(first->result(0).const_data_ptr())[1], 2);
  EXPECT_EQ(model.at<float>(1), 4);
}

TEST(PluginFrame, ThreadsDoNotShareWhatTheyPass) {
  Loaded model("weighted");
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int number = 0; number < 8; ++number)
    threads.emplace_back([&, number] {
      std::vector<double> x = {0, 0};
      for (int i = 0; i < 200; ++i) {
        x[1] = 1000 * number + i;
        const fpt_arg input = in(x);
        direct::DirectAnswer answer;
        model.model->call("", {&input, 1}, 0, answer);
        wrong += static_cast<const double*>(answer.result(0).const_data_ptr())[1] != 2 * x[1];
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace fpt::test
