// SPDX-License-Identifier: MIT
/// Methods, training, files: what a TorchScript model is besides one call.
#include <array>

#include "comma_locale.hpp"
#include "plugin/loaded.hpp"

namespace fpt::test {
namespace {

constexpr OptimizerSettings adam{1, 0, 0, 1e-3, 0, 0, 0.9, 0.999, 1e-8};

/// A network that is trained, with input and target.
struct ScriptModelTraining : testing::Test {
  std::vector<float> x = std::vector<float>(32, 0.5f), target = std::vector<float>(8, 1);
  Loaded model{"mlp"};
  const Folder folder;
  const std::string file = (folder.path() / "trained.pt").string();

  Outcome train() { return model.train(in(x, {16, 2}), in(target, {4, 2})); }
  float predict() {
    EXPECT_OK(model.call(nullptr, {in(x, {16, 2})}));
    return model.at<float>(0);
  }
};

TEST_F(ScriptModelTraining, IsSeenByTheNextPrediction) {
  ASSERT_OK(model.create_optimizer(adam));
  for (int i = 0; i < 3; ++i) predict();  // frozen by now
  for (int i = 0; i < 3; ++i) {
    const float before = predict();
    ASSERT_OK(train());
    EXPECT_NE(predict(), before) << "step " << i;
  }
}

TEST_F(ScriptModelTraining, TheRewrittenFormGivesTheSameNumbers) {
  const auto prediction = [&](const fpt_arg& input) {
    EXPECT_OK(model.call(nullptr, {input}));
    return std::vector<float>(
        &model.at<float>(0),
        &model.at<float>(0) + model.array().extents[0] * (model.array().rank > 1 ? model.array().extents[1] : 1));
  };
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = 0.1f * static_cast<float>(i) - 1;
  const OptimizerSettings still{0, 0, 0, 0, 0, 0, 0, 0, 0};
  ASSERT_OK(model.create_optimizer(still));
  for (const fpt_arg& input : {in(x, {16, 2}), in(x, {16})}) {
    const std::vector<float> rewritten = prediction(input);
    ASSERT_OK(train());  // after which the model runs as it was written, for 50 calls
    for (int i = 0; i < 60; ++i) ASSERT_EQ(prediction(input), rewritten) << "call " << i;
  }
}

TEST_F(ScriptModelTraining, GoesOnAfterARestoreWithEveryOptimizer) {
  for (const OptimizerSettings& settings :
       {OptimizerSettings{0, 0, 0, 0.1, 0, 0, 0, 0, 0}, OptimizerSettings{0, 1, 0, 0.1, 0.9, 0.01, 0, 0, 0}, adam,
        OptimizerSettings{2, 0, 1, 1e-2, 0, 0.01, 0.9, 0.999, 1e-8}}) {
    ASSERT_OK(model.create_optimizer(settings));
    ASSERT_OK(train());
    ASSERT_OK(train());
    ASSERT_OK(model.save(file));
    std::vector<double> losses[2];
    for (auto& run : losses) {
      for (int i = 0; i < 3; ++i) {
        ASSERT_OK(train());
        run.push_back(model.loss);
      }
      ASSERT_OK(model.restore(file));
    }
    EXPECT_EQ(losses[0], losses[1]) << "optimizer " << settings.kind;
  }
}

TEST_F(ScriptModelTraining, AStepWithoutAGradientIsNone) {
  // one of its layers is trained by a single row, the other by several
  const OptimizerSettings adamw{2, 0, 1, 1e-2, 0, 0.1, 0.9, 0.999, 1e-8};
  Loaded trained("zoo_branches_training"), fresh("zoo_branches_training");
  for (Loaded* branches : {&trained, &fresh}) ASSERT_OK(branches->create_optimizer(adamw));
  for (int i = 0; i < 4; ++i) {
    ASSERT_OK(trained.train(in(x, {16, 2}), in(target, {4, 2})));
    for (Loaded* branches : {&trained, &fresh}) ASSERT_OK(branches->train(in(x, {16, 1}), in(target, {4, 1})));
    EXPECT_EQ(trained.loss, fresh.loss) << "step " << i;
  }
}

TEST_F(ScriptModelTraining, AFailedStepLeavesTheModelAlone) {
  ASSERT_OK(model.create_optimizer(adam));
  const float before = predict();
  std::vector<double> wide(8, 1);
  EXPECT_FAILS(model.train(in(x, {16, 2}), in(target, {8})), FPT_ERR_SHAPE,
               "the prediction has shape (2, 4) and the target (8,)");
  EXPECT_FAILS(model.train(in(x, {16, 2}), in(wide, {4, 2})), FPT_ERR_DTYPE,
               "the prediction is float32 and the target float64");
  EXPECT_EQ(model.loss, -1);
  EXPECT_EQ(predict(), before);
}

TEST_F(ScriptModelTraining, AnotherModelIsNotRestored) {
  const float before = predict();
  Loaded other("counter");
  ASSERT_OK(other.save(file));
  EXPECT_FAILS(model.restore(file), FPT_ERR_FORMAT, "holds another model than direct_mlp.pt: they differ in");
  EXPECT_FAILS(model.restore("direct_truncated.pt"), FPT_ERR_FORMAT, "cannot be read");
  EXPECT_EQ(predict(), before);
}

TEST_F(ScriptModelTraining, AModelWithoutParametersHasNoOptimizer) {
  Loaded other("weighted");
  EXPECT_FAILS(other.create_optimizer(adam), FPT_ERR_ARGUMENT, "no parameters that can be trained");
}

TEST(ScriptModel, WhatAnotherMethodReplacesIsSeenByTheNextPrediction) {
  Loaded model("scaled");
  std::vector<float> x = {1}, scale = {1}, target = {0};
  const auto rescale = [&](float value) {
    scale[0] = value;
    ASSERT_OK(model.call("rescale", {in(scale)}));
    for (int i = 0; i < 60; ++i) {  // enough to be frozen again
      ASSERT_OK(model.call(nullptr, {in(x)}));
      ASSERT_EQ(model.at<float>(0), value) << "call " << i;
    }
  };
  for (int i = 0; i < 3; ++i) ASSERT_OK(model.call(nullptr, {in(x)}));  // frozen by now
  rescale(2);
  const OptimizerSettings still{0, 0, 0, 0, 0, 0, 0, 0, 0};
  ASSERT_OK(model.create_optimizer(still));
  ASSERT_OK(model.train(in(x), in(target)));
  rescale(3);
}

TEST(ScriptModel, AReloadThatFailsLeavesTheModelAsItWas) {
  const Folder folder;
  const std::string file = (folder.path() / "counter.pt").string();
  std::filesystem::copy_file("direct_counter.pt", file);
  Loaded original(file, "counter", {});
  std::vector<float> x = {1};
  ASSERT_OK(original.call(nullptr, {in(x)}));
  folder.write("counter.pt", "no model");
  EXPECT_FAILS(outcome_of([&] { original.model->reload(); }), FPT_ERR_FORMAT, "cannot be read");
  ASSERT_OK(original.call(nullptr, {in(x)}));
  EXPECT_EQ(original.at<float>(0), 2) << "it goes on counting";
}

TEST(ScriptModel, HooksOfItsOwnAreRefusedAndThoseOfItsPartsAreRun) {
  EXPECT_FAILS(outcome_of([] { Loaded("hooked"); }), FPT_ERR_FORMAT, "has hooks of its own");
  Loaded model("hooked_part");
  std::vector<float> x = {3};
  ASSERT_OK(model.call(nullptr, {in(x)}));
  EXPECT_EQ(model.at<float>(0), 8);
}

TEST(ScriptModel, PrivateMethodsAreNotOffered) {
  Loaded model("two");
  EXPECT_TRUE(model.model->has("named"));
  EXPECT_FALSE(model.model->has("missing"));
  EXPECT_FAILS(model.call("missing", {}), FPT_ERR_HOOK, "it has adds, chosen, conjugate, fails, flags, forward");
}

TEST(ScriptModel, StateOfAnOptimizerIsTheSameInEachLocale) {
  Loaded model("mlp");
  ASSERT_OK(model.create_optimizer(adam));
  const Folder folder;
  const std::string file = (folder.path() / "trained.pt").string();
  const auto state = [&] {
    std::ifstream stream(file, std::ios::binary);
    const std::string whole((std::istreambuf_iterator<char>(stream)), {});
    const std::size_t begin = whole.find("ftn_pytorch optimizer 1\n");
    return whole.substr(begin, whole.find("\nend\n", begin) - begin);
  };
  ASSERT_OK(model.save(file));
  const std::string usual = state();
  EXPECT_NE(usual.find("\nlr 0x1.0624dd2f1a9fcp-10\n"), std::string::npos) << usual;
  {
    const CommaLocale comma;
    EXPECT_OK(model.restore(file));
    ASSERT_OK(model.save(file));
    EXPECT_OK(model.restore(file));
  }
  EXPECT_EQ(state(), usual);
  EXPECT_OK(model.restore(file));
}

TEST(ScriptModel, DamagedStateOfAnOptimizerIsRefused) {
  Loaded model("mlp");
  ASSERT_OK(model.create_optimizer(adam));
  const Folder folder;
  const std::string file = (folder.path() / "trained.pt").string();
  ASSERT_OK(model.save(file));
  std::ifstream stream(file, std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(stream)), {});
  // of equal lengths, so that the archive stays one
  const std::vector<std::array<std::string, 3>> changes = {
      {"optimizer 1\n", "optimizer 2\n", "later version"},
      {"kind adam", "kind ogre", "ogre"},
      {"kind adam", "eps 0x0p0", "settings are missing"},
      {"lr 0x1.0", "lr -0x10", "lr is -"},
      {"lr 0x1.0", "lr infini", "is no number"},
      {"lr 0x1.0", "lq 0x1.0", "begins with \"lq\""},
      {"parameter 0.bias 0", "parameter 0.bias 4", "left nothing behind"},
      {"parameter 0.bias 0", "parameter 9.bias 0", "no parameter 9.bias"},
      {"\nend\n", "\nfin\n", "begins with \"fin\""},
  };
  for (const auto& [old, replacement, reason] : changes) {
    std::string content = whole;
    const std::size_t at = content.find(old);
    ASSERT_NE(at, std::string::npos) << old;
    content.replace(at, replacement.size(), replacement);
    folder.write("trained.pt", content);
    EXPECT_FAILS(model.restore(file), FPT_ERR_FORMAT, reason);
  }
  std::string content = whole;
  content.replace(content.find("lr 0x1.0"), 8, "lr 0x1,0");
  folder.write("trained.pt", content);
  EXPECT_OK(model.restore(file)) << "as 0.2.0 wrote it in the locale of the program";
}

}  // namespace
}  // namespace fpt::test
