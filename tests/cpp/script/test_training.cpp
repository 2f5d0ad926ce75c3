// SPDX-License-Identifier: MIT
/// What a training function may return.
#include <cmath>

#include "script.hpp"
#include "script/training.hpp"

namespace fpt {
namespace {

using test::in;
using test::option;
using test::Script;

const char* const training_script = R"(
import collections
import torch
import numpy
Step = collections.namedtuple("Step", "completed loss")
def ftn_pytorch_train(expression, target):
    return eval(expression, globals(), dict(target=target))
)";

struct TrainTest : testing::Test {
  static void SetUpTestSuite() { script_ = new Script(training_script); }
  static void TearDownTestSuite() { delete script_; }
  static Script& script() { return *script_; }

  std::vector<double> target = {1, 2};

  test::Outcome train(const std::string& expression) {
    script().completed = -1;
    script().loss = -1;
    return script().train({in(expression.c_str())}, {in(target)});
  }

  /// Accepted, and both results are these.
  void expect(const std::string& expression, int32_t completed, double loss) {
    ASSERT_OK(train(expression)) << expression;
    EXPECT_EQ(script().completed, completed) << expression;
    EXPECT_EQ(script().loss, loss) << expression;
  }

  /// Refused, and nothing was set.
  void expect_refused(const std::string& expression, const std::string& text) {
    EXPECT_FAILS(train(expression), FPT_ERR_TRAIN_RESULT, text) << expression;
    EXPECT_EQ(script().completed, -1) << expression;
    EXPECT_EQ(script().loss, -1) << expression;
  }

 private:
  static Script* script_;
};

Script* TrainTest::script_ = nullptr;

TEST_F(TrainTest, ReturnsABoolAndANumber) {
  expect("(False, 0.5)", 0, 0.5);
  expect("(True, 0.25)", 1, 0.25);
  expect("[True, 2]", 1, 2);
  expect("Step(True, 0.5)", 1, 0.5);
}

TEST_F(TrainTest, MayReturnTensorsWithoutAxes) {
  expect("(torch.tensor(True), torch.tensor(0.5))", 1, 0.5);
  expect("(False, torch.tensor(0.5, dtype=torch.float64))", 0, 0.5);
  expect("(False, torch.tensor(0.5, dtype=torch.bfloat16))", 0, 0.5);
  expect("(False, torch.tensor(3))", 0, 3);
  expect("(False, torch.tensor(0.5, requires_grad=True) * 2)", 0, 1);
  expect("(False, torch.tensor(0.5, dtype=torch.float16, requires_grad=True))", 0, 0.5);
  expect("(False, torch._neg_view(torch.tensor(0.5)))", 0, -0.5);
}

TEST_F(TrainTest, MayReturnScalarsOfNumPy) {
  expect("(numpy.bool_(True), numpy.float32(0.5))", 1, 0.5);
  expect("(numpy.array(False), numpy.array(0.5))", 0, 0.5);
  expect("(False, numpy.int16(3))", 0, 3);
}

TEST_F(TrainTest, ALossThatIsNoNumberAnyMoreIsPassedOn) {
  ASSERT_OK(train("(False, float('nan'))"));
  EXPECT_TRUE(std::isnan(script().loss));
  ASSERT_OK(train("(False, torch.tensor(float('nan')))"));
  EXPECT_TRUE(std::isnan(script().loss));
  ASSERT_OK(train("(False, torch.tensor(float('inf')))"));
  EXPECT_TRUE(std::isinf(script().loss));
}

TEST_F(TrainTest, TheWrongOrderIsSaid) {
  expect_refused("(0.5, False)", "the two are in the wrong order");
  expect_refused("(torch.tensor(0.5), torch.tensor(False))", "the two are in the wrong order");
}

TEST_F(TrainTest, ReturnsTwoValues) {
  expect_refused("None", "must return (is_completed, loss) but returned None");
  expect_refused("0.5", "returned float");
  expect_refused("True", "returned bool");
  expect_refused("torch.tensor(0.5)", "returned Tensor");
  expect_refused("{'completed': False, 'loss': 0.5}", "returned dict");
  expect_refused("(False,)", "returned 1 values");
  expect_refused("(False, 0.5, 0.5)", "returned 3 values");
  expect_refused("()", "returned 0 values");
}

TEST_F(TrainTest, TheFirstIsABool) {
  for (const char* first : {"0", "1", "None", "'no'", "0.0", "torch.tensor(0)", "torch.tensor([True])", "numpy.int8(1)",
                            "object()", "torch.zeros((1,) * 8)", "torch.zeros((), device='meta', dtype=torch.bool)"})
    expect_refused(std::string("(") + first + ", 0.5)", "and no bool");
}

TEST_F(TrainTest, TheLossIsOneRealNumber) {
  for (const char* loss :
       {"None", "'0.5'", "True", "1j", "torch.tensor([0.5])", "torch.zeros(0)", "torch.tensor(1j)",
        "torch.tensor(True)", "numpy.bool_(True)", "numpy.complex64(1)", "[0.5]", "object()", "10**400",
        "torch.zeros((1,) * 8)", "torch.zeros((), device='meta')", "torch.zeros(2).to_sparse()"})
    expect_refused(std::string("(False, ") + loss + ")", "no single real number");
}

TEST_F(TrainTest, NothingIsPrintedWhateverTheLossIs) {
  testing::internal::CaptureStderr();
  expect("(False, torch.tensor(0.5, requires_grad=True) * 2)", 0, 1);
  expect("(False, torch.tensor(0.5, dtype=torch.bfloat16, requires_grad=True) * 2)", 0, 1);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST_F(TrainTest, AnExceptionLeavesBothResultsAlone) {
  EXPECT_EQ(train("1 / 0").status, FPT_ERR_PYTHON);
  EXPECT_EQ(script().completed, -1);
  EXPECT_EQ(script().loss, -1);
}

TEST(TrainArguments, AreTheInputsFollowedByTheTargets) {
  Script script("import torch\ndef ftn_pytorch_train(x, y, t): return False, float(100 * x[0] + 10 * y[0] + t[0])\n");
  std::vector<double> x = {1}, y = {2}, t = {3};
  ASSERT_OK(script.train({in(x), in(y)}, {in(t)}));
  EXPECT_EQ(script.loss, 123);
}

TEST(TrainArguments, ATargetBesideNamedInputsIsCalledTarget) {
  Script script("import torch\ndef ftn_pytorch_train(*, x, target): return False, float(10 * x[0] + target[0])\n");
  std::vector<double> x = {1}, t = {3};
  for (int i = 0; i < 4; ++i) {
    ASSERT_OK(script.train({test::named("x", in(x))}, {in(t)}));
    EXPECT_EQ(script.loss, 13);
  }
}

TEST(TrainArguments, AChangedTargetIsNoticed) {
  Script script("import torch\ndef ftn_pytorch_train(x, t):\n    t += 1\n    return False, 0.0\n",
                {option("mode", "safe")});
  std::vector<double> x = {1}, t = {3};
  EXPECT_FAILS(script.train({in(x)}, {in(t)}), FPT_ERR_INPUT_MODIFIED, "target 1");
}

TEST(TrainArguments, TheGraphOfALossIsNotKeptStorage) {
  test::CollectedWarnings warnings;
  Script script(R"(
import torch
w = torch.ones(2, dtype=torch.float64, requires_grad=True)
def ftn_pytorch_train(x, t):
    loss = ((w * x - t) ** 2).mean()
    loss.backward()
    return False, loss
)");
  std::vector<double> x = {1, 2}, t = {3, 4};
  for (int i = 0; i < 4; ++i) ASSERT_OK(script.train({in(x)}, {in(t)}));
  EXPECT_EQ(script.loss, 4);
  EXPECT_EQ(warnings.all(), "");
}

}  // namespace
}  // namespace fpt
