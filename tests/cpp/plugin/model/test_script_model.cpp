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

TEST(ScriptModel, WhatAMethodHasReplacedIsRestored) {
  const Folder folder;
  const std::string file = (folder.path() / "scaled.pt").string();
  Loaded model("scaled");
  std::vector<float> x = {1}, scale = {2};
  const auto predict = [&] {
    EXPECT_OK(model.call(nullptr, {in(x)}));
    return model.at<float>(0);
  };
  ASSERT_OK(model.call("rescale", {in(scale)}));
  ASSERT_OK(model.save(file));
  scale[0] = 3;
  ASSERT_OK(model.call("rescale", {in(scale)}));
  for (int i = 0; i < 60; ++i) ASSERT_EQ(predict(), 3);  // frozen by now
  ASSERT_OK(model.restore(file));
  for (int i = 0; i < 60; ++i) ASSERT_EQ(predict(), 2);
  ASSERT_OK(model.call("rescale", {in(scale)}));
  EXPECT_EQ(predict(), 3);
  EXPECT_FAILS(Loaded("counter").restore(file), FPT_ERR_FORMAT, "holds another model");
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

std::string bytes_of(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

/// A model that 0.2.0 has trained three times and written, with the state of its optimizer as a text.
struct TrainedByOldVersion : testing::Test {
  std::vector<float> x = std::vector<float>(12, 0.5f), target = std::vector<float>(8, 1);
  Loaded model{"trained_by_0_2_0"};

  std::vector<double> losses() {
    std::vector<double> found;
    for (int i = 0; i < 3; ++i) {
      EXPECT_OK(model.train(in(x, {3, 4}), in(target, {2, 4})));
      found.push_back(model.loss);
    }
    return found;
  }
};

TEST_F(TrainedByOldVersion, GoesOnAndBecomesAFileOfToday) {
  const Folder folder;
  const std::string file = (folder.path() / "trained.pt").string();
  ASSERT_OK(model.save(file));
  EXPECT_EQ(bytes_of(file).find("ftn_pytorch optimizer 1"), std::string::npos);
  const std::vector<double> usual = losses();
  for (const std::string& each : {std::string("direct_trained_by_0_2_0.pt"), file}) {
    ASSERT_OK(model.restore(each));
    EXPECT_EQ(losses(), usual) << each;
  }
  const CommaLocale comma;
  for (const std::string& each : {std::string("direct_trained_by_0_2_0.pt"), file}) {
    ASSERT_OK(model.restore(each));
    EXPECT_EQ(losses(), usual) << each;
  }
}

/// Replaces bytes of a file by as many others, so that the archive stays one.
void expect_refused(Loaded& model, const std::string& original,
                    const std::vector<std::array<std::string, 3>>& changes) {
  const Folder folder;
  const std::string whole = bytes_of(original);
  for (const auto& [old, replacement, reason] : changes) {
    std::string content = whole;
    const std::size_t at = content.find(old);
    ASSERT_NE(at, std::string::npos) << old;
    content.replace(at, replacement.size(), replacement);
    folder.write("trained.pt", content);
    EXPECT_FAILS(model.restore((folder.path() / "trained.pt").string()), FPT_ERR_FORMAT, reason);
  }
}

TEST_F(TrainedByOldVersion, DamagedTextIsRefused) {
  expect_refused(model, "direct_trained_by_0_2_0.pt",
                 {
                     {"optimizer 1\n", "optimizer 2\n", "later version"},
                     {"kind adam", "kind ogre", "ogre"},
                     {"kind adam", "lr 0x1.00", "settings are missing"},
                     {"eps 0x", "lrr 0x", "settings are missing: eps"},
                     {"amsgrad 1", "nesters 1", "settings are missing: amsgrad"},
                     {"lr 0x1.4", "lr -0x14", "lr is -"},
                     {"lr 0x1.4", "lr infini", "is no number"},
                     {"parameter bias 3", "parameter bias -", "is no number"},
                     {"parameter bias 3", "parameter bics 3", "no parameter bics"},
                     {"float32 2\n", "float64 2\n", "type and shape"},
                     {"\nend\n", "\nfin\n", "it ends early"},
                     {"first float32", "forth float32", "begins with \"forth\""},
                 });
  const Folder folder;
  std::string content = bytes_of("direct_trained_by_0_2_0.pt");
  content.replace(content.find("lr 0x1.4"), 8, "lr 0x1,4");
  folder.write("trained.pt", content);
  EXPECT_OK(model.restore((folder.path() / "trained.pt").string())) << "as it was written in the locale of the program";
}

TEST_F(ScriptModelTraining, DamagedStateOfAnOptimizerIsRefused) {
  ASSERT_OK(model.create_optimizer(adam));
  ASSERT_OK(train());
  ASSERT_OK(model.save(file));
  expect_refused(model, file,
                 {
                     {"\x80\x02}(", "\x80\x09}(", "does not begin as a pickle of torch.save"},
                     {"Adam", "Ogre", "there is no optimizer \"Ogre\""},
                     {"param_groups", "param_graups", "there is no \"param_groups\""},
                     {"weight_decay", "weight_decoy", "there is no \"weight_decay\""},
                     {"0.bias", "9.bias", "no parameter 9.bias"},
                     {"exp_avg_sq", "exp_avg_sx", "left nothing behind"},
                     {"_rebuild_tensor_v2", "_rebuild_tensor_v9", "which no plain value needs"},
                 });
}

}  // namespace
}  // namespace fpt::test
