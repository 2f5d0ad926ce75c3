// SPDX-License-Identifier: MIT
/// Saved models in the place of a script, with those of tests/fortran/scripts/make_direct_models.py, by the plug-in as
/// the library opens it. What the models compute and how they take their arguments is beside this file and in
/// tests/fortran/test_direct*.f90.
#include "fake_driver.hpp"
#include "plugin/direct_model.hpp"
#include "script.hpp"

namespace fpt {
namespace {

using test::file_of;
using test::in;
using test::Model;
using test::named;
using test::out;
using test::outcome;
using test::outcome_of;

using Doubles = std::vector<double>;

bool has_gpu() {
  Options there;
  there.device = "cuda";
  return outcome_of([&] { torch_side().load(file_of("two"), ModelKind::torchscript, there, {}); }).status == FPT_OK;
}

struct DirectRunnerTest : testing::Test {
  Doubles x = {1, 2, 3, 4, 5, 6}, y = Doubles(6, -1), z = Doubles(6, -1);
  int64_t results = 0, tensor = 0;
  void* data = nullptr;

  void hold(TensorPtr made) {
    free_tensor(tensor);
    tensor = insert_unscoped(std::move(made));
  }
  /// Of result 1, of one axis.
  test::Outcome memory_of_result(int32_t dtype) {
    int64_t extent, stride;
    return outcome(fpt_results_data(results, 1, dtype, 1, &data, &extent, &stride));
  }
  test::Outcome copy_result(fpt_arg output, int32_t cast) {
    return outcome(fpt_results_copy(results, 1, &output, cast));
  }
  ~DirectRunnerTest() override {
    fpt_results_free(results);
    free_tensor(tensor);
  }
};

TEST_F(DirectRunnerTest, LoadRefusesWhatASavedModelCannotHave) {
  const auto load = [](const std::string& file, const Options& options, Args config) {
    return outcome_of([&] { torch_side().load(file, ModelKind::torchscript, options, config); });
  };
  fpt_arg rate = named("lr", in(0.1));
  EXPECT_FAILS(load(file_of("two"), {}, {&rate, 1}), FPT_ERR_ARGUMENT, "takes no config");
  EXPECT_FAILS(load(file_of("foreign"), {}, {}), FPT_ERR_FORMAT, "direct_foreign.pt cannot be read");
  Options elsewhere;
  elsewhere.device = "abacus";
  EXPECT_FAILS(load(file_of("two"), elsewhere, {}), FPT_ERR_DEVICE, "abacus");
}

TEST_F(DirectRunnerTest, HasTheMethodsOfTheModelAndWhatTheLibraryDoesForIt) {
  const Model model("two");
  EXPECT_EQ(model->backend(), "direct");
  for (const char* name : {"ftn_pytorch_forward", "ftn_pytorch_train", "ftn_pytorch_save", "ftn_pytorch_restore",
                           "named", "ftn_pytorch_create_optimizer_adamw"})
    EXPECT_TRUE(model->has(name)) << name;
  for (const char* name : {"", "missing", "ftn_pytorch_", "ftn_pytorch_setup", "ftn_pytorch_checkpoint",
                           "ftn_pytorch_create_optimizer_", "ftn_pytorch_create_optimizer_lion"})
    EXPECT_FALSE(model->has(name)) << name;
}

TEST_F(DirectRunnerTest, OfAnInputThatWasCastOnlyWhatTheModelChangedComesBack) {
  Options single;
  single.real_dtype = FPT_FLOAT32;
  x = {0.1, 0.2, 0.3};
  ASSERT_OK(Model("meddler", single).call("set_first", {out(x)}));
  EXPECT_EQ(x, (Doubles{5, 0.2, 0.3})) << "the others are not rounded";
}

TEST_F(DirectRunnerTest, OneTensorGoesIntoItsOutputInEitherLayout) {
  ASSERT_OK(Model("weighted").forward({in(x, {3, 2})}, {out(y, {3, 2})}));
  EXPECT_EQ(y, (Doubles{1, 4, 9, 4, 10, 18})) << "weights along the last axis of the model, the first of Fortran";
  Options same;
  same.same_layout = true;
  ASSERT_OK(Model("weighted", same).forward({in(x, {3, 2})}, {out(y, {3, 2})}));
  EXPECT_EQ(y, (Doubles{1, 2, 3, 8, 10, 12}));
}

TEST_F(DirectRunnerTest, ResultsGoByPlaceOrByName) {
  const Model two("two"), range("range");
  ASSERT_OK(two.forward({in(x), in(x)}, {out(y), out(z)}));
  EXPECT_EQ(y[5], 12);
  EXPECT_EQ(z[5], 0);
  double sum = 0, low = 0, high = 0;
  ASSERT_OK(two.call("named", {in(x)}, {named("sum", out(sum)), named("double", out(y))}));
  EXPECT_EQ(sum, 21);
  EXPECT_EQ(y[5], 12);
  ASSERT_OK(range.forward({in(x)}, {out(low), out(high)}));
  ASSERT_OK(range.forward({in(x)}, {named("high", out(high))}));
  EXPECT_EQ(low, 1);
  EXPECT_EQ(high, 6);
  EXPECT_FAILS(two.call("named", {in(x)}, {out(y), out(sum)}), FPT_ERR_RESULT_NAME,
               "named of direct_two returned named results");
  EXPECT_FAILS(two.forward({in(x), in(x)}, {out(y)}), FPT_ERR_RESULT_COUNT,
               "ftn_pytorch_forward of direct_two returned 2 results");
}

TEST_F(DirectRunnerTest, NoOutputIsWrittenWhereTheTensorIsRefused) {
  const auto runner = torch_side().load(file_of("two"), ModelKind::torchscript, {}, {});
  std::vector<fpt_arg> inputs = {in(x), in(x)}, outputs = {out(y), out(z)};
  TensorPtr made;
  EXPECT_FAILS(outcome_of([&] { runner->run({forward_hook, inputs, {outputs, nullptr, &made}}); }),
               FPT_ERR_RESULT_COUNT, "returned 2 results, but one tensor is expected");
  EXPECT_TRUE(y == Doubles(6, -1) && z == Doubles(6, -1));
}

TEST_F(DirectRunnerTest, NumbersAndTextsAreResultsToo) {
  int32_t next = 0;
  double half = 0;
  bool positive = false;
  std::string word(6, '-');
  ASSERT_OK(Model("two").call("scalars", {in(3), in("west")}, {out(next), out(half), out(positive), out(word)}));
  EXPECT_EQ(next, 4);
  EXPECT_EQ(half, 1.5);
  EXPECT_TRUE(positive);
  EXPECT_EQ(word, "west! ");
}

TEST_F(DirectRunnerTest, HalfPrecisionIsWidenedOnTheWayOut) {
  const Model model("two");
  std::vector<float> single(6);
  ASSERT_OK(model.call("half", {in(x)}, {out(single)}));
  EXPECT_EQ(single[5], 6);
  ASSERT_OK(model.call("half", {in(x)}, {}, &results));
  EXPECT_FAILS(memory_of_result(FPT_FLOAT32), FPT_ERR_DTYPE, "float16");
  ASSERT_OK(copy_result(out(y), 0));
  EXPECT_EQ(y, x);
}

TEST_F(DirectRunnerTest, InputsLiveAsLongAsResultsThatShareTheirMemoryAndNoLonger) {
  for (const auto& [name, is_shared] : {std::pair("passing", true), {"weighted", false}}) {
    const Model model(name);
    const auto memory = std::make_shared<Doubles>(x);
    const std::weak_ptr<Doubles> alive = memory;
    fpt_tensor owned = insert_unscoped(Tensor::of_memory(array_of(in(*memory)), memory, false));
    fpt_arg input;
    ASSERT_OK(outcome_of([&] { input = tensor_argument(owned); }));
    ASSERT_OK(model.forward({input}, {}, &results));
    free_tensor(owned);
    EXPECT_EQ(alive.use_count() > 1, is_shared) << name;
    fpt_results_free(results);
    EXPECT_EQ(alive.use_count(), 1) << name;
  }
}

TEST_F(DirectRunnerTest, AResultThatIsAnInputAgainAndAgainIsOwnedByItsMemoryAlone) {
  const Model model("passing");
  const auto memory = std::make_shared<Doubles>(x);
  hold(Tensor::of_memory(array_of(in(*memory)), memory, false));
  for (int call = 0; call < 200000; ++call) {
    fpt_arg input = tensor_argument(tensor);
    hold(model.of_list({&input, 1}));
  }
  EXPECT_EQ(tensor_at(tensor)->array().data, memory->data());
  EXPECT_EQ(tensor_at(tensor)->owner(), memory);
  free_tensor(tensor);  // one after the other, a chain of owners would end here with the stack
  EXPECT_EQ(memory.use_count(), 1);
}

TEST_F(DirectRunnerTest, ResultsAndTensorsOutliveTheModel) {
  {
    const Model model("weighted");
    ASSERT_OK(model.forward({in(x)}, {}, &results));
    fpt_arg input = in(x);
    hold(model.of_list({&input, 1}));
  }
  ASSERT_OK(memory_of_result(FPT_FLOAT64));
  EXPECT_EQ(static_cast<double*>(data)[5], 36);
  EXPECT_EQ(static_cast<double*>(tensor_at(tensor)->array().data)[5], 36);
}

TEST_F(DirectRunnerTest, AListGivesOneTensor) {
  fpt_arg inputs[] = {in(x), in(x)};
  EXPECT_FAILS(outcome_of([&] { Model("two").of_list({inputs, 2}); }), FPT_ERR_RESULT_COUNT, "returned 2 results");
}

TEST_F(DirectRunnerTest, ACopyIsTakenOver) {
  const fpt_arg copy = test::array_arg(x.data(), {6}, FPT_COPY);
  x.assign(6, 0);
  ASSERT_OK(Model("weighted").forward({copy}, {out(y)}));
  EXPECT_EQ(y[5], 36);
  EXPECT_FAILS(Model("weighted").forward({copy}, {out(y)}), FPT_ERR_FREED, "torch_copy");
}

TEST_F(DirectRunnerTest, TensorsStandForTheirMemoryUnderTheNameOfTheArgument) {
  hold(Tensor::of_arg(out(z)));
  z.assign(6, 10);
  ASSERT_OK(Model("two").forward({named("b", tensor_argument(tensor)), named("a", in(x))},
                                 {out(y), tensor_argument(tensor)}));
  EXPECT_EQ(y[5], 16);
  EXPECT_EQ(z[5], -4) << "a - b, into b itself";
}

TEST_F(DirectRunnerTest, WhatWasWrongInADescriptionIsToldByTheCall) {
  EXPECT_FAILS(Model("two").forward({in(x), named("b", test::array_arg<double>(nullptr, {2}))}, {out(y)}),
               FPT_ERR_UNALLOCATED, "input 2 (\"b\") of ftn_pytorch_forward of direct_two");
  EXPECT_FAILS(Model("mlp").train({in(x)}, {test::array_arg<double>(nullptr, {2})}), FPT_ERR_UNALLOCATED,
               "target 1 of ftn_pytorch_train of direct_mlp");
}

TEST_F(DirectRunnerTest, NamesAreInOrderWhateverTheModelTakes) {
  const Model model("two");
  EXPECT_FAILS(model.forward({named("a", in(x)), in(y)}, {out(z)}), FPT_ERR_ARGUMENT,
               "input 2 of ftn_pytorch_forward of direct_two has no name but follows named arguments");
  for (const char* name : {"a", "none"})
    EXPECT_FAILS(model.forward({named(name, in(x)), named(name, in(y))}, {out(z)}), FPT_ERR_ARGUMENT,
                 std::string("two arguments of ftn_pytorch_forward of direct_two are called \"") + name);
  EXPECT_FAILS(model.train({named("a", in(x))}, {named("a", in(y))}), FPT_ERR_ARGUMENT, "two arguments of");
  EXPECT_FAILS(model.train({named("a", in(x))}, {in(y), in(z)}), FPT_ERR_ARGUMENT, "target 1 of");
  EXPECT_FAILS(model.train({in(x)}, {named("goal", in(y))}), FPT_ERR_SIGNATURE, "it is called \"target\", or nothing");
  EXPECT_FAILS(model.train({named("a", in(x)), named("b", in(x))}, {in(y)}), FPT_ERR_HOOK, "there is no optimizer");
}

TEST_F(DirectRunnerTest, FailuresOfTheModelLeaveOutputsAlone) {
  const Model model("two");
  EXPECT_FAILS(model.call("fails", {in(x, {3, 2})}, {out(y)}), FPT_ERR_PYTHON, "fails of direct_two");
  EXPECT_FAILS(model.call("missing", {}, {out(y)}), FPT_ERR_HOOK, "has no function missing; it has");
  EXPECT_FAILS(model.forward({in(x)}, {out(y)}), FPT_ERR_SIGNATURE, "'b'");
  EXPECT_FAILS(model.forward({in(x), in(x)}, {out(y), out(z, {2, 3})}), FPT_ERR_SHAPE, "output 2");
  EXPECT_EQ(y, Doubles(6, -1));
}

struct DirectTraining : testing::Test {
  std::vector<float> x = std::vector<float>(2 * 16, 0.5f), target = std::vector<float>(2 * 4, 1);
  fpt_arg input() { return in(x, {16, 2}); }
  fpt_arg goal() { return in(target, {4, 2}); }
};

TEST_F(DirectTraining, NeedsAnOptimizerAndOneTarget) {
  const Model model("mlp");
  EXPECT_FAILS(model.train({input()}, {goal()}), FPT_ERR_HOOK, "there is no optimizer");
  EXPECT_FAILS(model.call("ftn_pytorch_create_optimizer_lion", {in(0.1)}), FPT_ERR_HOOK, "sgd, adam, adamw");
  EXPECT_FAILS(model.call("ftn_pytorch_create_optimizer_sgd", {}), FPT_ERR_SIGNATURE, "learning rate");
  ASSERT_OK(model.call("ftn_pytorch_create_optimizer_sgd", {in(0.1)}));
  EXPECT_FAILS(model.train({input()}, {goal(), goal()}), FPT_ERR_SIGNATURE, "was given 2 targets");
  EXPECT_FAILS(model.train({input()}, {}), FPT_ERR_SIGNATURE, "was given 0 targets");
  EXPECT_FAILS(model.train({input()}, {in(1.0)}), FPT_ERR_ARGUMENT, "scalar by value");
}

TEST_F(DirectTraining, TellsTheLossBeforeEachStep) {
  const Model model("mlp");
  ASSERT_OK(model.call("ftn_pytorch_create_optimizer_adam", {in(0.01)}));
  Training first, second;
  ASSERT_OK(model.train({input()}, {goal()}, &first));
  ASSERT_OK(model.train({input()}, {goal()}, &second));
  EXPECT_GT(first.loss, second.loss);
  EXPECT_GT(second.loss, 0);
  EXPECT_EQ(first.completed, 0) << "a saved model never says that it is done";
}

TEST_F(DirectTraining, GoesOnWhereASavedFileEnded) {
  const test::Folder folder;
  const std::string file = (folder.path() / "trained.pt").string();
  const Model model("mlp");
  ASSERT_OK(model.call("ftn_pytorch_create_optimizer_adam", {in(0.01)}));
  Training step, again;
  ASSERT_OK(model.train({input()}, {goal()}));
  model->save(file);
  ASSERT_OK(model.train({input()}, {goal()}, &step));
  EXPECT_EQ(model->restore(file, false, -1), -1) << "no step is known";
  ASSERT_OK(model.train({input()}, {goal()}, &again));
  EXPECT_EQ(step.loss, again.loss);
}

TEST_F(DirectRunnerTest, ReloadBeginsWithTheFileAnew) {
  const Model model("counter");
  std::vector<float> count(1), one = {1};
  for (int i = 1; i <= 3; ++i) ASSERT_OK(model.forward({in(one)}, {out(count)}));
  EXPECT_EQ(count[0], 3);
  model->reload();
  ASSERT_OK(model.forward({in(one)}, {out(count)}));
  EXPECT_EQ(count[0], 1);
}

TEST_F(DirectRunnerTest, MemoryOfADeviceIsRefusedBeforeAnythingRuns) {
  if (has_gpu()) GTEST_SKIP() << "this libtorch can use a GPU";
  auto* const there = static_cast<float*>(test::device_memory());
  const Model model("counter");
  std::vector<float> count(1), one = {1};
  for (int i = 0; i < 3; ++i) {
    EXPECT_FAILS(model.forward({in(one)}, {test::array_arg(there, {1}, FPT_OUT)}), FPT_ERR_DEVICE,
                 "output 1 is in memory of cuda:0: the array is in memory of cuda:0, which this libtorch cannot use");
    EXPECT_FAILS(model.forward({test::array_arg(there, {1})}, {out(count)}), FPT_ERR_DEVICE,
                 "input 1 of ftn_pytorch_forward of direct_counter: the array is in memory of cuda:0");
  }
  ASSERT_OK(model.forward({in(one)}, {out(count)}, &results));
  EXPECT_EQ(count[0], 1) << "this call is the first that ran";
  EXPECT_FAILS(copy_result(test::array_arg(there, {1}, FPT_OUT), 1), FPT_ERR_DEVICE, "cannot use");
  Options converting;
  converting.real_dtype = FPT_FLOAT32;
  EXPECT_FAILS(Model("weighted", converting).forward({test::array_arg(reinterpret_cast<double*>(there), {1})}, {}),
               FPT_ERR_DEVICE, "input 1 of ftn_pytorch_forward of direct_weighted");
}

TEST_F(DirectTraining, TargetsInMemoryOfADeviceAreRefused) {
  if (has_gpu()) GTEST_SKIP() << "this libtorch can use a GPU";
  auto* const there = static_cast<float*>(test::device_memory());
  const Model model("mlp");
  ASSERT_OK(model.call("ftn_pytorch_create_optimizer_sgd", {in(0.1)}));
  Training first, second;
  ASSERT_OK(model.train({input()}, {goal()}, &first));
  EXPECT_FAILS(model.train({input()}, {test::array_arg(there, {4, 2})}), FPT_ERR_DEVICE, "cannot use");
  EXPECT_FAILS(model.train({test::array_arg(there, {16, 2})}, {goal()}), FPT_ERR_DEVICE, "cannot use");
  ASSERT_OK(model.train({input()}, {goal()}, &second));
  EXPECT_GT(first.loss, second.loss);
}

TEST_F(DirectRunnerTest, AStreamNeedsALibtorchThatKnowsThem) {
  if (has_gpu()) GTEST_SKIP() << "this libtorch can use a GPU";
  const Model model("counter");
  std::vector<float> count(1), one = {1};
  EXPECT_FAILS(outcome_of([&] { model->set_stream(nullptr, false); }), FPT_ERR_DEVICE, "knows no streams of CUDA");
  ASSERT_OK(model.forward({in(one)}, {out(count)}));
  EXPECT_EQ(count[0], 1) << "a refused stream is none";
  ASSERT_OK(outcome_of([&] { model->wait(); }));
}

TEST_F(DirectRunnerTest, HasNoCheckpoints) {
  const test::Folder folder;
  const std::string place = folder.path().string(), missing = (folder.path() / "none.pt").string();
  const Model model("counter");
  EXPECT_FAILS(outcome_of([&] { model->checkpoint(place, 3, -1); }), FPT_ERR_HOOK, "backend=\"python\"");
  EXPECT_FAILS(outcome_of([&] { model->restore(place, false, -1); }), FPT_ERR_HOOK,
               "checkpoints of saved recordings only");
  EXPECT_FAILS(outcome_of([&] { model->restore(file_of("counter"), true, -1); }), FPT_ERR_HOOK,
               "checkpoints of saved recordings only");
  EXPECT_FAILS(outcome_of([&] { model->restore(file_of("counter"), false, 3); }), FPT_ERR_HOOK,
               "checkpoints of saved recordings only");
  EXPECT_FAILS(outcome_of([&] { model->restore(missing, false, -1); }), FPT_ERR_NO_CHECKPOINT,
               "none.pt does not exist");
}

TEST_F(DirectRunnerTest, LeavesObjectsToPython) {
  const Model model("two");
  EXPECT_FAILS(outcome_of([&] { create(*model.operator->(), "ftn_pytorch_averaged", {}); }), FPT_ERR_HOOK,
               "backend=\"python\"");
  EXPECT_FAILS(outcome_of([&] { create(*model.operator->(), "ftn_pytorch_optimizer", {}); }), FPT_ERR_ARGUMENT,
               "no parameter of");
}

TEST_F(DirectRunnerTest, DerivativesAreThoseOfTheMethod) {
  const Model model("weighted");  // x times 1, 2, 3 along its last axis
  Doubles direction = {1, 1, 1, 0, 0, 1};
  ASSERT_OK(model.call("ftn_pytorch_adjoint:1:ftn_pytorch_forward", {in(direction, {3, 2}), in(x, {3, 2})},
                       {out(y, {3, 2})}));
  EXPECT_EQ(y, (Doubles{1, 2, 3, 0, 0, 3}));
  ASSERT_OK(model.call("ftn_pytorch_tangent:1:ftn_pytorch_forward", {in(direction, {3, 2}), in(x, {3, 2})},
                       {out(z, {3, 2})}));
  EXPECT_EQ(z, y) << "a diagonal matrix";
  Doubles matrix(36);
  ASSERT_OK(model.call("ftn_pytorch_jacobian:0:ftn_pytorch_forward", {in(x, {3, 2})}, {out(matrix, {3, 2, 3, 2})}));
  for (std::size_t i = 0; i < 36; ++i) EXPECT_EQ(matrix[i], i % 7 == 0 ? static_cast<double>(i / 7 % 3 + 1) : 0) << i;
}

TEST_F(DirectRunnerTest, DerivativesRefuseWhatDoesNotFit) {
  const Model model("weighted"), two("two");
  const std::string adjoint = "ftn_pytorch_adjoint:1:ftn_pytorch_forward";
  EXPECT_FAILS(model.call(adjoint, {in(x, {3, 1}), in(x, {3, 2})}, {out(y)}), FPT_ERR_SHAPE,
               "gradient 1 is float64 (1, 3), Fortran (3, 1), output 1 of ftn_pytorch_forward is float64 (2, 3)");
  std::vector<float> single(6);
  EXPECT_FAILS(model.call(adjoint, {in(single, {3, 2}), in(x, {3, 2})}, {out(y)}), FPT_ERR_DTYPE, "float32 (2, 3)");
  EXPECT_FAILS(model.call(adjoint, {in(1.0), in(x, {3, 2})}, {out(y)}), FPT_ERR_SHAPE, "gradient 1 is a number");
  EXPECT_FAILS(two.call(adjoint, {in(x), in(x), in(x)}, {out(y)}), FPT_ERR_ARGUMENT,
               "1 gradients were given, but ftn_pytorch_forward has 2 real or complex outputs");
  EXPECT_FAILS(two.call("ftn_pytorch_tangent:1:ftn_pytorch_forward", {in(x), in(x), in(x)}, {out(y)}), FPT_ERR_ARGUMENT,
               "1 tangents were given, but ftn_pytorch_forward has 2 real or complex inputs");
  EXPECT_FAILS(two.call("ftn_pytorch_jacobian:0:ftn_pytorch_forward", {in(x), in(x)}, {out(y)}), FPT_ERR_ARGUMENT,
               "a Jacobian is that of one input and one output");
  EXPECT_FAILS(two.call("ftn_pytorch_adjoint:1:missing", {in(x), in(x)}, {out(y)}), FPT_ERR_HOOK, "has no function");
  EXPECT_FAILS(two.call("ftn_pytorch_adjoint:3:ftn_pytorch_forward", {in(x)}, {out(y)}), FPT_ERR_ARGUMENT,
               "fewer arguments");
}

}  // namespace
}  // namespace fpt
