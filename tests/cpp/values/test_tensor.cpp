// SPDX-License-Identifier: MIT
/// Tensors and argument lists, as the drop-in types use them.
#include "script.hpp"
#include "values/tensor.hpp"

namespace fpt {
namespace {

using test::in;
using test::option;
using test::out;
using test::outcome;
using test::Script;

using Doubles = std::vector<double>;

const char* const tensor_script = R"(
import torch
def twice(x): return 2 * x
def address(x): return x.data_ptr()
def same(x): return x
def half(x): return x.half()
def number(x): return 1.5
def text(x): return "text"
def pair(x): return x, x
def transposed(): return torch.arange(6, dtype=torch.float64).reshape(2, 3).t()
def ftn_pytorch_forward(x, y): return x + y
)";

struct TensorTest : testing::Test {
  static void SetUpTestSuite() { script_ = new Script(tensor_script); }
  static void TearDownTestSuite() { delete script_; }
  static const Script& script() { return *script_; }

  /// The result of a function as a tensor.
  static void get(test::Tensor& tensor, const std::string& function, std::vector<fpt_arg> inputs) {
    test::Results results;
    ASSERT_OK(script().call(function, std::move(inputs), {}, &results.handle));
    ASSERT_EQ(fpt_results_get(results.handle, 1, &tensor.handle), FPT_OK);
  }

  static test::Outcome data_of(const test::Tensor& tensor, int32_t dtype, int32_t rank) {
    return outcome(fpt_tensor_data(tensor.handle, dtype, rank, &data, extents, strides));
  }

  static void* data;
  static int64_t extents[FPT_MAX_RANK], strides[FPT_MAX_RANK];

 private:
  static Script* script_;
};

Script* TensorTest::script_ = nullptr;
void* TensorTest::data;
int64_t TensorTest::extents[FPT_MAX_RANK], TensorTest::strides[FPT_MAX_RANK];

TEST_F(TensorTest, OfAnArrayIsItsMemory) {
  Doubles x(6);
  const test::Tensor tensor(out(x, {2, 3}));
  ASSERT_OK(data_of(tensor, FPT_FLOAT64, 2));
  EXPECT_EQ(data, x.data());
  EXPECT_EQ(extents[0], 2);
  EXPECT_EQ(strides[1], 16);
  int64_t seen = 0;
  ASSERT_OK(script().call("address", {tensor.arg()}, {out(seen)}));
  EXPECT_EQ(seen, test::address(x.data()));
}

TEST_F(TensorTest, TellsTypeShapeAndPlace) {
  Doubles x(6);
  const test::Tensor tensor(out(x, {2, 3}));
  int32_t dtype = 0, rank = 0;
  char device[32] = "";
  ASSERT_OK(outcome(fpt_tensor_info(tensor.handle, &dtype, &rank, extents, device)));
  EXPECT_EQ(dtype, FPT_FLOAT64);
  EXPECT_EQ(rank, 2);
  EXPECT_EQ(extents[1], 3);
  EXPECT_EQ(extents[2], 0);
  EXPECT_STREQ(device, "cpu");
}

TEST_F(TensorTest, OfAResultLivesOnWithoutTheResults) {
  Doubles x = {1, 2};
  test::Tensor tensor;
  get(tensor, "twice", {in(x)});
  ASSERT_OK(data_of(tensor, FPT_FLOAT64, 1));
  EXPECT_EQ(static_cast<double*>(data)[1], 4);
}

TEST_F(TensorTest, OfATransposedResultHasItsStrides) {
  test::Tensor tensor;
  get(tensor, "transposed", {});
  ASSERT_OK(data_of(tensor, FPT_FLOAT64, 2));
  EXPECT_EQ(extents[0], 2) << "(3, 2) in Python";
  EXPECT_EQ(extents[1], 3);
  EXPECT_EQ(strides[0], 24);
  EXPECT_EQ(strides[1], 8);
}

TEST_F(TensorTest, IsPassedOnWithoutACopy) {
  Doubles x = {1, 2};
  test::Tensor tensor;
  get(tensor, "twice", {in(x)});
  ASSERT_OK(data_of(tensor, FPT_FLOAT64, 1));
  for (int i = 0; i < 4; ++i) {
    int64_t seen = 0;
    ASSERT_OK(script().call("address", {tensor.arg()}, {out(seen)}));
    EXPECT_EQ(seen, test::address(data));
  }
}

TEST_F(TensorTest, GoesToAScriptOfTheOtherLayoutAndFramework) {
  const Script same("import torch\ndef item(x, i, j): return x[i, j].item()", {option("layout", "same")});
  const Script numpy("import numpy\ndef item(x, i, j): return float(x[i, j])");
  test::Tensor tensor;
  get(tensor, "transposed", {});  // [[0, 3], [1, 4], [2, 5]] in Python, (2,3) in Fortran
  double value = 0;
  for (int i = 0; i < 4; ++i) {
    ASSERT_OK(same.call("item", {tensor.arg(), in(1), in(2)}, {out(value)}));
    EXPECT_EQ(value, 5);
    ASSERT_OK(numpy.call("item", {tensor.arg(), in(2), in(1)}, {out(value)}));
    EXPECT_EQ(value, 5);
  }
}

TEST_F(TensorTest, HasOneTypeAndRank) {
  Doubles x = {1, 2};
  const test::Tensor tensor(out(x));
  EXPECT_FAILS(data_of(tensor, FPT_FLOAT32, 1), FPT_ERR_DTYPE, "is float64, but the array is real(real32)");
  EXPECT_FAILS(data_of(tensor, FPT_FLOAT64, 2), FPT_ERR_RANK, "has 1 axes, shape (2,)");
}

TEST_F(TensorTest, TakesNewContentsUnderTheSameHandle) {
  Doubles x = {1, 2}, y = {3, 4};
  test::Tensor tensor(out(x));
  const fpt_tensor before = tensor.handle;
  fpt_arg arg = out(y);
  ASSERT_EQ(fpt_tensor_set(&tensor.handle, &arg), FPT_OK);
  EXPECT_EQ(tensor.handle, before);
  ASSERT_OK(data_of(tensor, FPT_FLOAT64, 1));
  EXPECT_EQ(data, y.data());
}

TEST_F(TensorTest, KeepsItsContentsWhenNewOnesAreRefused) {
  Doubles x = {1, 2};
  test::Tensor tensor(out(x));
  fpt_arg none = test::array_arg<double>(nullptr, {2}, FPT_OUT);
  EXPECT_FAILS(outcome(fpt_tensor_set(&tensor.handle, &none)), FPT_ERR_UNALLOCATED, "no memory");
  ASSERT_OK(data_of(tensor, FPT_FLOAT64, 1));
  EXPECT_EQ(data, x.data());
}

TEST_F(TensorTest, OfATensorSharesItsMemory) {
  Doubles x = {1, 2};
  const test::Tensor one(out(x)), two(one.arg());
  EXPECT_NE(one.handle, two.handle);
  ASSERT_OK(data_of(two, FPT_FLOAT64, 1));
  EXPECT_EQ(data, x.data());
}

TEST_F(TensorTest, OfACopyOwnsIt) {
  Doubles x = {1, 2, 3};
  const test::Tensor tensor(test::array_arg(&x[2], {3}, FPT_COPY, {-8}));
  x = {0, 0, 0};
  for (int i = 0; i < 4; ++i) {
    Doubles y(3);
    ASSERT_OK(script().call("twice", {tensor.arg()}, {out(y)}));
    EXPECT_EQ(y, (Doubles{6, 4, 2}));
  }
}

TEST_F(TensorTest, WhatAScriptKeepsOfACopyOrAResultOutlivesTheTensor) {
  test::CollectedWarnings warnings;
  for (const char* framework : {"torch", "numpy"})
    for (const char* layout : {"same", "reversed"}) {
      const Script keeps("import " + std::string(framework) + "\nkept = []\ndef keep(x): kept.append(x[1:])\n",
                         {option("layout", layout)});
      std::vector<Doubles> others;  // takes the place of what is freed too early
      for (int i = 0; i < 5; ++i) {
        Doubles x(1000, i);
        test::Tensor copy(test::array_arg(x.data(), {1000}, FPT_COPY)), result;
        get(result, "twice", {in(x)});
        ASSERT_OK(keeps.call("keep", {copy.arg()}));
        ASSERT_OK(keeps.call("keep", {result.arg()}));
        fpt_tensor_free(copy.handle);
        fpt_tensor_free(result.handle);
        for (int k = 0; k < 4; ++k) others.emplace_back(1000, -7);
      }
      EXPECT_EQ(keeps.text("[float(k.sum()) for k in kept]"),
                "[0.0, 0.0, 999.0, 1998.0, 1998.0, 3996.0, 2997.0, 5994.0, 3996.0, 7992.0]")
          << framework;
    }
  EXPECT_EQ(warnings.all(), "") << "nothing here belongs to Fortran";
}

TEST_F(TensorTest, OfACopyMayBeChangedByScriptsOfAnyFramework) {
  Doubles x = {1, 2, 3};
  const test::Tensor tensor(test::array_arg(x.data(), {3}, FPT_COPY));
  for (const char* framework : {"torch", "numpy"}) {
    const Script script("import " + std::string(framework) + "\ndef add(x): x += 1\n");
    for (int i = 0; i < 3; ++i) ASSERT_OK(script.call("add", {tensor.arg()}));
  }
  Doubles y(3);
  ASSERT_OK(script().call("twice", {tensor.arg()}, {out(y)}));
  EXPECT_EQ(y, (Doubles{14, 16, 18}));
  EXPECT_EQ(x, (Doubles{1, 2, 3}));
}

TEST_F(TensorTest, OfAScalarRefersToTheVariable) {
  double x = 1;
  const test::Tensor tensor(out(x));
  x = 5;
  double y = 0;
  ASSERT_OK(script().call("twice", {tensor.arg()}, {out(y)}));
  EXPECT_EQ(y, 10);
}

TEST_F(TensorTest, OfATextIsRefused) {
  fpt_tensor handle = 0;
  fpt_arg text = in("text");
  EXPECT_FAILS(outcome(fpt_tensor_set(&handle, &text)), FPT_ERR_KIND, "a string cannot become a tensor");
  EXPECT_EQ(handle, 0);
}

TEST_F(TensorTest, ThatIsNotSetOrFreedIsTold) {
  test::Tensor tensor;
  fpt_arg arg;
  EXPECT_FAILS(outcome(fpt_tensor_arg(0, &arg)), FPT_ERR_NOT_LOADED, "not a tensor with contents yet");
  EXPECT_NE(script().call("twice", {arg}).status, FPT_OK);
  Doubles x = {1, 2};
  {
    const test::Tensor freed(out(x));
    arg = freed.arg();
  }
  EXPECT_FAILS(script().call("twice", {arg}), FPT_ERR_FREED, "has been freed");
  EXPECT_FAILS(outcome(fpt_tensor_arg(arg.handle, &arg)), FPT_ERR_FREED, "has been freed");
  EXPECT_EQ(fpt_tensor_is_set(arg.handle), 0);
  EXPECT_EQ(fpt_tensor_address(arg.handle), nullptr);
  EXPECT_EQ(fpt_tensor_is_set(0), 0);
  EXPECT_FAILS(data_of(tensor, FPT_FLOAT64, 1), FPT_ERR_NOT_LOADED, "");
}

struct WrapTest : TensorTest {
  fpt_wrap wrap = 0;
  WrapTest() { EXPECT_EQ(fpt_wrap_create(&wrap), FPT_OK); }
  ~WrapTest() override { fpt_wrap_free(wrap); }
  void add(fpt_arg arg) { EXPECT_OK(outcome(fpt_wrap_add(wrap, &arg))); }
  test::Outcome forward(const Script& of, test::Tensor& result) {
    return outcome(fpt_module_forward_wrap(of.handle(), wrap, &result.handle, 0));
  }
  double first(const test::Tensor& tensor) {
    EXPECT_OK(data_of(tensor, FPT_FLOAT64, 1));
    return *static_cast<double*>(data);
  }
};

TEST_F(WrapTest, ArrivesAsSeparateArgumentsWhereThereAreSeveral) {
  Doubles x = {1}, y = {2};
  add(in(x));
  add(in(y));
  for (int i = 0; i < 4; ++i) {
    test::Tensor sum;
    ASSERT_OK(forward(script(), sum));
    EXPECT_EQ(first(sum), 3);
  }
}

TEST_F(WrapTest, ArrivesAsOneListWhereTheFunctionTakesOneArgument) {
  const Script script("import torch\ndef ftn_pytorch_forward(inputs): return inputs[0] + 10 * inputs[1] + len(inputs)");
  Doubles x = {1}, y = {2};
  add(in(x));
  add(in(y));
  for (int i = 0; i < 4; ++i) {
    test::Tensor result;
    ASSERT_OK(forward(script, result));
    EXPECT_EQ(first(result), 23);
  }
}

TEST_F(WrapTest, TrainsWithAListAndATarget) {
  const Script script("import torch\ndef ftn_pytorch_train(inputs, target): return True, inputs[0] + 10 * target[0]");
  Doubles t = {2};
  add(in(1.0));
  const test::Tensor target(out(t));
  for (int i = 0; i < 4; ++i) {
    int32_t completed = 0;
    double loss = 0;
    ASSERT_OK(outcome(fpt_module_train_wrap(script.handle(), wrap, target.handle, &completed, &loss)));
    EXPECT_EQ(completed, 1);
    EXPECT_EQ(loss, 21);
  }
}

TEST_F(WrapTest, KeepsATensorThatIsFreedOrReplaced) {
  Doubles x = {1}, y = {2};
  {
    test::Tensor result;
    get(result, "twice", {in(x)});
    add(result.arg());
  }
  add(in(y));
  test::Tensor sum;
  ASSERT_OK(forward(script(), sum));
  EXPECT_EQ(first(sum), 4);
}

TEST_F(WrapTest, KeepsACopyForManyCalls) {
  Doubles x = {1};
  add(test::array_arg(x.data(), {1}, FPT_COPY));
  add(test::array_arg(x.data(), {1}, FPT_COPY));
  x[0] = 99;
  for (int i = 0; i < 4; ++i) {
    test::Tensor sum;
    ASSERT_OK(forward(script(), sum));
    EXPECT_EQ(first(sum), 2);
  }
}

TEST_F(WrapTest, TheOutputMayBeOneOfTheInputs) {
  Doubles x = {1}, y = {2};
  test::Tensor result(out(x));
  add(result.arg());
  add(in(y));
  ASSERT_OK(forward(script(), result));
  EXPECT_EQ(first(result), 3);
  EXPECT_EQ(x[0], 1);
}

TEST_F(WrapTest, MayBeFreedByTheCallThatUsesIt) {
  const Script script("import ctypes\nfree = ctypes.CFUNCTYPE(None, ctypes.c_int64)(" +
                      std::to_string(test::address(reinterpret_cast<void*>(fpt_wrap_free))) +
                      ")\ndef ftn_pytorch_forward(x, y):\n    free(" + std::to_string(wrap) + ")\n    return x + y\n");
  Doubles x = {1}, y = {2};
  add(test::array_arg(x.data(), {1}, FPT_COPY));
  add(out(y));
  test::Tensor sum;
  ASSERT_OK(forward(script, sum));
  EXPECT_EQ(first(sum), 3);
  EXPECT_EQ(fpt_wrap_clear(wrap), FPT_ERR_FREED);
}

TEST_F(WrapTest, IsEmptiedByClearAndByCreatingItAgain) {
  add(in(1.0));
  ASSERT_EQ(fpt_wrap_clear(wrap), FPT_OK);
  const fpt_wrap before = wrap;
  add(in(1.0));
  ASSERT_EQ(fpt_wrap_create(&wrap), FPT_OK);
  EXPECT_EQ(wrap, before);
  test::Tensor result;
  EXPECT_EQ(forward(script(), result).status, FPT_ERR_SIGNATURE) << "without arguments";
}

TEST_F(WrapTest, RefusesWhatCouldNotBeDescribed) {
  fpt_arg none = test::array_arg<double>(nullptr, {2});
  EXPECT_FAILS(outcome(fpt_wrap_add(wrap, &none)), FPT_ERR_UNALLOCATED, "no memory");
  fpt_arg arg = in(1.0);
  EXPECT_FAILS(outcome(fpt_wrap_add(0, &arg)), FPT_ERR_NOT_LOADED, "not a list of tensors yet");
}

TEST_F(WrapTest, TheResultIsOneTensor) {
  for (const auto& [function, status] :
       {std::pair{"pair", FPT_ERR_RESULT_COUNT}, std::pair{"number", FPT_ERR_RESULT_TYPE},
        std::pair{"text", FPT_ERR_RESULT_TYPE}}) {
    const Script one(std::string(tensor_script) + "\nftn_pytorch_forward = " + function +
                     "\nftn_pytorch_convention = 'args'\n");
    Doubles x = {1};
    ASSERT_EQ(fpt_wrap_clear(wrap), FPT_OK);
    add(in(x));
    test::Tensor result;
    EXPECT_EQ(forward(one, result).status, status) << function;
    EXPECT_EQ(result.handle, 0);
  }
}

}  // namespace
}  // namespace fpt
