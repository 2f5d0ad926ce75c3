// SPDX-License-Identifier: MIT
/// Results of NumPy as pointers and as tensors: memory that torch cannot express, and memory that is protected.
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

const char* const objects_script = R"(
import mmap
import numpy as np
import torch
ftn_pytorch_framework = "numpy"
records = np.zeros(3, dtype=[("k", "<i4"), ("x", "<f8")])
records["x"] = 10, 20, 30
one = np.zeros(3, dtype=[("k", "<i4"), ("x", "<f8")])[:1]
def packed(): return records["x"]
def single(): return one["x"]
constant = np.frombuffer(b"\0" * 24)
mapped = np.frombuffer(mmap.mmap(-1, 24, access=mmap.ACCESS_READ))
broadcast = np.broadcast_to(np.zeros(1), (3,))
locked = np.zeros(3)
locked.flags.writeable = False
def of(name): return globals()[name]
def same(x): return x[1:]
def sums(): return [float(each.sum()) for each in (constant, mapped, broadcast, locked)]
)";

const char* const torch_source = R"(
import torch
def twice(x): return 2 * x
def grow(x): x += 1; return x
)";

struct ObjectTensor : testing::Test {
  Script script{objects_script}, in_torch{torch_source};
  test::Results results;
  test::Tensor tensor;
  Doubles y = {-1, -1, -1};
  void* data = nullptr;
  int64_t extents[FPT_MAX_RANK] = {}, strides[FPT_MAX_RANK] = {};

  void get(const std::string& function, std::vector<fpt_arg> inputs = {}) {
    ASSERT_OK(script.call(function, std::move(inputs), {}, &results.handle));
    ASSERT_OK(outcome(fpt_results_get(results.handle, 1, &tensor.handle)));
  }
  fpt_arg argument() const {
    fpt_arg arg;
    EXPECT_OK(outcome(fpt_tensor_arg(tensor.handle, &arg)));
    return arg;
  }
  test::Outcome memory_of_result() {
    return outcome(fpt_results_data(results.handle, 1, FPT_FLOAT64, 1, &data, extents, strides));
  }
  test::Outcome memory_of_tensor() {
    return outcome(fpt_tensor_data(tensor.handle, FPT_FLOAT64, 1, &data, extents, strides));
  }
  test::Outcome copy_of_result() {
    fpt_arg target = out(y);
    return outcome(fpt_results_copy(results.handle, 1, &target, 0));
  }
};

TEST_F(ObjectTensor, OfAFieldOfPackedRecordsIsComputedWithAsACopy) {
  get("packed");
  const char* const reason = "elements of 8 bytes every 12 bytes";
  EXPECT_FAILS(in_torch.call("twice", {argument()}, {out(y)}), FPT_ERR_STRIDE, reason);
  const Script torch_functions(torch_source, {option("layout", "same")});
  EXPECT_FAILS(torch_functions.call("twice", {argument()}, {out(y)}), FPT_ERR_STRIDE, "copy_to");
  EXPECT_EQ(y, (Doubles{-1, -1, -1}));
  ASSERT_OK(copy_of_result());
  EXPECT_EQ(y, (Doubles{10, 20, 30}));
  test::Tensor sum;
  ASSERT_OK(outcome(fpt_tensor_operate(FPT_ADD, tensor.handle, tensor.handle, nullptr, &sum.handle)));
  ASSERT_OK(outcome(fpt_tensor_data(sum.handle, FPT_FLOAT64, 1, &data, extents, strides)));
  EXPECT_EQ(Doubles(static_cast<double*>(data), static_cast<double*>(data) + 3), (Doubles{20, 40, 60}));
}

TEST_F(ObjectTensor, OfOneElementHasNoStride) {
  get("single");
  Doubles one = {-1};
  ASSERT_OK(in_torch.call("twice", {argument()}, {out(one)}));
  EXPECT_EQ(one[0], 0);
}

struct ProtectedMemory : ObjectTensor, testing::WithParamInterface<const char*> {};

INSTANTIATE_TEST_SUITE_P(Of, ProtectedMemory, testing::Values("constant", "mapped", "broadcast", "locked"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(ProtectedMemory, HasNoPointer) {
  get("of", {in(GetParam())});
  EXPECT_FAILS(memory_of_result(), FPT_ERR_ARGUMENT, "use copy_to");
  EXPECT_FAILS(memory_of_tensor(), FPT_ERR_ARGUMENT, "use copy_to");
  EXPECT_EQ(data, nullptr);
  ASSERT_OK(copy_of_result());
  EXPECT_EQ(y, (Doubles{0, 0, 0}));
}

TEST_P(ProtectedMemory, IsCopiedForTorch) {
  get("of", {in(GetParam())});
  ASSERT_OK(in_torch.call("grow", {argument()}, {out(y)}));
  EXPECT_EQ(y, (Doubles{1, 1, 1}));
  test::Tensor sum;
  ASSERT_OK(outcome(fpt_tensor_operate(FPT_ADD, tensor.handle, tensor.handle, nullptr, &sum.handle)));
  EXPECT_EQ(script.text("sums()"), "[0.0, 0.0, 0.0, 0.0]");
}

TEST_F(ObjectTensor, OfAViewOfAnInputIsMemoryOfTheProgram) {
  Doubles x = {1, 2, 3};
  get("same", {in(x)});
  ASSERT_OK(memory_of_result());
  EXPECT_EQ(data, &x[1]);
  ASSERT_OK(memory_of_tensor());
  EXPECT_EQ(data, &x[1]);
}

}  // namespace
}  // namespace fpt
