// SPDX-License-Identifier: MIT
/// Tensors that torch changes between two questions, and while several threads ask.
#include <atomic>
#include <complex>
#include <thread>

#include "script.hpp"

namespace fpt {
namespace {

using test::in;
using test::out;
using test::outcome;
using test::Script;

using Doubles = std::vector<double>;

const char* const changes_script = R"(
import torch
def transposed(): return torch.arange(6, dtype=torch.float64).reshape(2, 3).t()
def widened(x): x.data = torch.zeros(2, 3, 4, dtype=torch.complex128)
def conjugate(): return torch.tensor([1 + 2j, 3 - 4j], dtype=torch.complex128).conj()[:1]
def many_ones(): return torch.ones(1000, dtype=torch.float64)
def twice(x): return 2 * x
def same(x): return x
def add_one(x):
    global last_kind
    last_kind = type(x).__name__
    x += 1
)";

struct TensorChanges : testing::Test {
  static void SetUpTestSuite() { script_ = new Script(changes_script); }
  static void TearDownTestSuite() { delete script_; }
  static const Script& script() { return *script_; }

  /// The result of a function without arguments as a tensor.
  static void get(test::Tensor& tensor, const std::string& function) {
    test::Results results;
    ASSERT_OK(script().call(function, {}, {}, &results.handle));
    ASSERT_EQ(fpt_results_get(results.handle, 1, &tensor.handle), FPT_OK);
  }

  /// Memory of a tensor of rank 1.
  test::Outcome data_of(const test::Tensor& tensor, int32_t dtype) {
    return outcome(fpt_tensor_data(tensor.handle, dtype, 1, &data, extents, strides));
  }

  void* data = nullptr;
  int64_t extents[FPT_MAX_RANK] = {}, strides[FPT_MAX_RANK] = {};

 private:
  static Script* script_;
};

Script* TensorChanges::script_ = nullptr;

TEST_F(TensorChanges, IsLookedIntoAnewByEachQuestion) {
  test::Tensor tensor;
  get(tensor, "transposed");
  const auto info = [&] {
    int32_t dtype = 0, rank = 0;
    char device[32] = "";
    EXPECT_OK(outcome(fpt_tensor_info(tensor.handle, &dtype, &rank, extents, device)));
    return std::pair(dtype, rank);
  };
  EXPECT_EQ(info(), (std::pair<int32_t, int32_t>(FPT_FLOAT64, 2)));
  ASSERT_OK(script().call("widened", {tensor.arg()}));
  EXPECT_EQ(info(), (std::pair<int32_t, int32_t>(FPT_COMPLEX128, 3)));
  EXPECT_EQ(extents[0], 4);
}

TEST_F(TensorChanges, OfANumberHasOneValue) {
  const test::Tensor tensor(in(2.0));
  double seen = 0;
  for (int i = 0; i < 4; ++i) {
    ASSERT_OK(script().call("same", {tensor.arg()}, {out(seen)}));
    EXPECT_EQ(seen, 2 + i);
    ASSERT_OK(script().call("add_one", {tensor.arg()}));
    fpt_arg output = out(seen);
    ASSERT_OK(outcome(fpt_tensor_copy(tensor.handle, &output, 0)));
    EXPECT_EQ(seen, 3 + i);
    EXPECT_EQ(script().text("last_kind"), "Tensor");
  }
}

TEST_F(TensorChanges, OfANumberIsAnOutputAndIsRenamedByAssignment) {
  test::Tensor number(in(2.0));
  Doubles x = {1, 2};
  const test::Tensor array(out(x));
  ASSERT_OK(script().call("twice", {in(2.5)}, {number.arg()}));
  double seen = 0;
  fpt_arg output = out(seen);
  ASSERT_OK(outcome(fpt_tensor_copy(number.handle, &output, 0)));
  EXPECT_EQ(seen, 5);
  const fpt_tensor before = number.handle;
  ASSERT_OK(outcome(fpt_tensor_assign(&number.handle, array.handle)));
  fpt_tensor_free(before);
  ASSERT_OK(data_of(number, FPT_FLOAT64));
  EXPECT_EQ(data, x.data());
}

/// Pointers stay where they are as long as nobody gives the tensor other memory.
TEST_F(TensorChanges, WithAConjugateBitHasItsValuesInMemoryOnceItWasAskedForThem) {
  test::Tensor tensor;
  get(tensor, "conjugate");
  ASSERT_OK(data_of(tensor, FPT_COMPLEX128));
  auto* const first = static_cast<std::complex<double>*>(data);
  EXPECT_EQ(first[0], std::complex<double>(1, -2));
  first[0] = {7, 8};
  ASSERT_OK(data_of(tensor, FPT_COMPLEX128));
  EXPECT_EQ(data, first);
  std::vector<std::complex<double>> seen(1);
  ASSERT_OK(script().call("same", {tensor.arg()}, {out(seen)}));
  EXPECT_EQ(seen[0], std::complex<double>(7, 8));
}

TEST_F(TensorChanges, LeaveWhatAScriptKeepsOfTheMemoryBefore) {
  const Script keeps("import numpy\nkept = []\ndef keep(x): kept.append(x)\n");
  std::vector<Doubles> others;  // takes the place of what is freed too early
  for (int i = 0; i < 5; ++i) {
    test::Tensor tensor;
    get(tensor, "many_ones");
    ASSERT_OK(keeps.call("keep", {tensor.arg()}));
    ASSERT_OK(script().call("widened", {tensor.arg()}));
    for (int k = 0; k < 4; ++k) others.emplace_back(1000, -7);
  }
  EXPECT_EQ(keeps.text("[float(k.sum()) for k in kept]"), "[1000.0, 1000.0, 1000.0, 1000.0, 1000.0]");
}

/// A question while another thread asks the same: nothing is kept that one could replace under the other.
TEST_F(TensorChanges, MayBeAskedByThreadsAtOnce) {
  constexpr int threads = 4, rounds = 10000;
  std::atomic<int> arrived{0}, wrong{0};
  fpt_tensor fresh = 0;
  const auto ask = [&] {
    int32_t dtype = 0, rank = 0;
    int64_t axes[FPT_MAX_RANK] = {};
    char device[32] = "";
    const bool right = fpt_tensor_info(fresh, &dtype, &rank, axes, device) == FPT_OK && dtype == FPT_FLOAT64 &&
                       rank == 2 && axes[0] == 2 && axes[1] == 3 && std::string(device) == "cpu";
    wrong += !right;
  };
  const auto meet = [&](int round) {
    ++arrived;
    while (arrived < (threads + 1) * round) std::this_thread::yield();
  };
  std::vector<std::thread> others;
  for (int i = 0; i < threads; ++i)
    others.emplace_back([&] {
      for (int round = 0; round < rounds; ++round) {
        meet(2 * round + 1);
        ask();
        meet(2 * round + 2);
      }
    });
  for (int round = 0; round < rounds; ++round) {
    test::Tensor tensor;
    get(tensor, "transposed");
    fresh = tensor.handle;
    meet(2 * round + 1);
    meet(2 * round + 2);
  }
  for (std::thread& other : others) other.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace fpt
