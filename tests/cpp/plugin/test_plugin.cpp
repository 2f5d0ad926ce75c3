// SPDX-License-Identifier: MIT
/// The table of the plug-in, failures and answers. It exports nothing else, so these tests stand for the files behind
/// it: here plugin, failure and answer; test_frame.cpp for frame and tensors; test_method.cpp; test_script_model.cpp
/// for script_model, rewrite, optimizer and optimizer_state, whose numbers tests/fortran/test_direct_training.f90
/// compares with those of Python. Packages (package_model, package_origin) are in
/// tests/fortran/test_direct_package.f90.
#include <thread>

#include "direct/direct_value.hpp"
#include "plugin/loaded.hpp"

namespace fpt::test {
namespace {

TEST(Plugin, SpeaksThisVersion) {
  EXPECT_EQ(plugin().version, FPT_DIRECT_VERSION);
  EXPECT_NE(std::string(plugin().torch_library()).find("libtorch_cpu.so"), std::string::npos);
}

TEST(Plugin, FileThatIsNotThere) {
  fpt_direct_options options{};
  options.name = "none";
  fpt_direct_module* module = nullptr;
  EXPECT_FAILS(outcome(plugin().load("none.pt", &options, &module)), FPT_ERR_FORMAT, "none.pt");
  EXPECT_EQ(module, nullptr);
}

TEST(Plugin, TensorIsDescribedInTheOrderOfTheModel) {
  Loaded model("weighted");
  std::vector<float> x = {1, 1, 1, 1, 1, 1};
  ASSERT_OK(model.call(nullptr, {in(x, {3, 2})}));
  ASSERT_EQ(model.answer.count, 1);
  const fpt_direct_value& value = model.answer.values[0];
  EXPECT_EQ(value.kind, FPT_DIRECT_TENSOR);
  EXPECT_EQ(value.dtype, FPT_FLOAT32);
  EXPECT_EQ(value.rank, 2);
  EXPECT_EQ(value.extents[0], 2);
  EXPECT_EQ(value.strides[0], 12);
  EXPECT_EQ(static_cast<float*>(value.data)[2], 3);
}

TEST(Plugin, AConjugatedTensorStaysForThoseWhoUseItWhenItsMemoryIsAskedFor) {
  const fpt_direct_tensors& tensors = plugin().tensors;
  std::vector<std::complex<float>> x = {{1, 2}, {3, 4}};
  fpt_direct_value memory{};
  set_memory(memory, array_of(in(x)));
  const auto described = [&](fpt_direct_tensor* tensor) {
    fpt_direct_value shown{};
    EXPECT_OK(outcome(tensors.describe_tensor(tensor, &shown)));
    return static_cast<const std::complex<float>*>(shown.data);
  };
  fpt_direct_tensor *base = nullptr, *conjugated = nullptr, *earlier = nullptr;
  ASSERT_OK(outcome(tensors.make_tensor(&memory, nullptr, nullptr, &base)));
  const fpt_direct_operand operand{base, nullptr, 0};
  const fpt_arg input{};
  fpt_direct_answer none{};
  ASSERT_OK(outcome(tensors.call_function("conj", 4, 0, &input, &operand, 1, &conjugated, &none)));
  void* used = tensors.address_of_tensor(conjugated);
  const auto* shown = described(conjugated);
  EXPECT_EQ(shown[1], std::complex<float>(3, -4));
  EXPECT_EQ(described(conjugated), shown) << "it is carried out once";
  ASSERT_OK(outcome(tensors.tensor_at(used, &earlier)));
  EXPECT_NE(described(earlier), shown) << "what another thread uses is what it was";
  EXPECT_EQ(described(earlier)[1], shown[1]);
  for (fpt_direct_tensor* each : {base, conjugated, earlier}) tensors.release_tensor(each);
}

TEST(Plugin, AnswerOutlivesItsModelAndItsThread) {
  fpt_direct_answer answer{};
  std::vector<float> x = {1, 2};
  {
    Loaded model("weighted");
    std::thread([&] {
      EXPECT_OK(model.call(nullptr, {in(x)}));
      std::swap(answer, model.answer);
    }).join();
  }
  ASSERT_EQ(answer.count, 1);
  EXPECT_EQ(static_cast<float*>(answer.values[0].data)[1], 4);
  plugin().release(answer.owner);
}

TEST(Plugin, TextOfAFailureBelongsToItsThread) {
  Loaded model("two");
  EXPECT_FAILS(model.call("missing", {}), FPT_ERR_HOOK, "missing");
  std::thread([&] { EXPECT_FAILS(model.call("absent", {}), FPT_ERR_HOOK, "absent"); }).join();
  EXPECT_NE(std::string(plugin().error_text()).find("missing"), std::string::npos);
}

TEST(Plugin, HalfPrecisionWidensOnItsWayToTheHost) {
  Loaded model("two");
  std::vector<float> x = {0.5f, 2};
  ASSERT_OK(model.call("half", {in(x)}));
  EXPECT_EQ(model.answer.values[0].dtype, FPT_FLOAT16);
  fpt_direct_value widened{}, as_it_is{};
  ASSERT_OK(outcome(plugin().to_host(&model.answer, 0, 1, &widened)));
  ASSERT_OK(outcome(plugin().to_host(&model.answer, 0, 0, &as_it_is)));
  EXPECT_EQ(widened.dtype, FPT_FLOAT32);
  EXPECT_EQ(static_cast<float*>(widened.data)[1], 2);
  EXPECT_EQ(as_it_is.dtype, FPT_FLOAT16);
  EXPECT_EQ(model.answer.values[0].dtype, FPT_FLOAT16) << "the result itself stays";
}

TEST(Plugin, TensorIsCopiedToStridedMemory) {
  Loaded model("weighted");
  std::vector<float> x = {1, 1}, y(4, 0);
  ASSERT_OK(model.call(nullptr, {in(x)}));
  fpt_direct_value target{};
  target.data = y.data();
  target.dtype = FPT_FLOAT32;
  target.rank = 1;
  target.device_type = 1;
  target.extents[0] = 2;
  target.strides[0] = 8;
  ASSERT_OK(outcome(plugin().copy(&model.answer.values[0], &target)));
  EXPECT_EQ(y, (std::vector<float>{1, 0, 2, 0}));
}

TEST(Plugin, ResultsThatFortranCannotHaveAreRefused) {
  Loaded model("two");
  std::vector<float> x = {1};
  EXPECT_FAILS(model.call("nested", {in(x)}), FPT_ERR_RESULT_TYPE,
               "result 2 of nested of two is a container inside another");
  ASSERT_OK(model.call("nothing", {in(x)}));
  EXPECT_EQ(model.answer.count, 0);
  std::vector<std::complex<float>> z = {{1, 2}};
  ASSERT_OK(model.call("conjugate", {in(z)}));
  EXPECT_EQ(model.at<std::complex<float>>(0), std::complex<float>(1, -2));
}

TEST(Plugin, ComplexArraysNeedNotLieAtMultiplesOfTheirSize) {
  Loaded model("two");
  alignas(8) float memory[7] = {0, 1, 2, 3, 4, 5, 6};
  for (float* begin : {memory, memory + 1}) {
    ASSERT_OK(model.call("conjugate", {array_arg(reinterpret_cast<std::complex<float>*>(begin), {3})}));
    EXPECT_EQ(model.at<std::complex<float>>(2), std::complex<float>(begin[4], -begin[5]));
  }
}

}  // namespace
}  // namespace fpt::test
