// SPDX-License-Identifier: MIT
/// Contexts around calls, with a driver that the test plays: two GPUs, and contexts by their addresses.
#include "base/cuda_context.hpp"
#include "support.hpp"

namespace {

char primary[2];      // contexts of torch, for each GPU
char of_program = 0;  // on GPU 1
void* current = nullptr;
int changes = 0;

}  // namespace

#define PLAYED extern "C" __attribute__((visibility("default"), used))
PLAYED int cuInit(unsigned) { return 0; }
PLAYED int cuCtxGetCurrent(void** context) { return *context = current, 0; }
PLAYED int cuCtxSetCurrent(void* context) { return ++changes, current = context, 0; }
PLAYED int cuCtxGetDevice(int* gpu) { return *gpu = current == &primary[0] ? 0 : 1, current ? 0 : 201; }
PLAYED int cuDeviceGetCount(int* count) { return *count = 2, 0; }
PLAYED int cuDevicePrimaryCtxRetain(void** context, int gpu) { return *context = &primary[gpu], gpu < 2 ? 0 : 101; }
PLAYED void* acc_get_cuda_stream(int queue) { return queue == 1 ? &of_program : nullptr; }

namespace fpt {
namespace {

std::vector<std::string> context_warnings;

struct ContextTest : testing::Test {
  ContextTest() {
    cuda_driver();
    current = nullptr;
    context_warnings.clear();
    set_warning_handler([](const char* text, int64_t length) { context_warnings.emplace_back(text, length); });
  }
  ~ContextTest() override {
    set_warning_handler(nullptr);
    current = nullptr;
  }
};

TEST_F(ContextTest, OfTheCallerIsCurrentAgainAfterACall) {
  current = &of_program;
  {
    const CallerContext call;
    EXPECT_EQ(current, &of_program);
    {
      const CallerContext inner;
      current = &primary[0];
    }
    EXPECT_EQ(current, &primary[0]) << "only the outermost call ends at the caller";
  }
  EXPECT_EQ(current, &of_program);
  EXPECT_TRUE(context_warnings.empty()) << "another GPU";
}

TEST_F(ContextTest, ThatACallLeavesStaysWhereTheCallerHadNone) {
  {
    const CallerContext call;
    current = &primary[0];
  }
  EXPECT_EQ(current, &primary[0]) << "runtimes of OpenACC adopt it";
}

TEST_F(ContextTest, IsNotSetWhereNothingChanged) {
  current = &primary[0];
  changes = 0;
  {
    const CallerContext call;
  }
  EXPECT_EQ(changes, 0);
}

TEST_F(ContextTest, OfTheCallerIsThatOfItsProcedures) {
  current = &of_program;
  const CallerContext call;
  current = &primary[0];
  {
    const CallerContextAgain procedure;
    EXPECT_EQ(current, &of_program);
  }
  EXPECT_EQ(current, &primary[0]);
}

TEST_F(ContextTest, ThatAProcedureMadeIsTheOneOfTheCaller) {
  {
    const CallerContext call;
    current = &primary[0];
    {
      const CallerContextAgain procedure;
      current = &of_program;
    }
    EXPECT_EQ(current, &primary[0]);
  }
  EXPECT_EQ(current, &of_program);
}

TEST_F(ContextTest, OutsideOfACallAProcedureChangesNothing) {
  current = &of_program;
  {
    const CallerContextAgain procedure;
  }
  EXPECT_EQ(current, &of_program);
}

TEST_F(ContextTest, TwoOnOneGpuAreToldOnce) {
  for (int i = 0; i < 2; ++i) {
    current = &of_program;
    const CallerContext call;
    current = &primary[1];
  }
  EXPECT_EQ(current, &of_program);
  ASSERT_EQ(context_warnings.size(), 1u);
  EXPECT_NE(context_warnings[0].find("call ftn_pytorch_init(device=\"cuda:1\")"), std::string::npos)
      << context_warnings[0];
}

TEST_F(ContextTest, ThePrimaryOneIsMadeCurrent) {
  make_primary_context_current(1);
  EXPECT_EQ(current, &primary[1]);
  EXPECT_FAILS(test::outcome_of([] { make_primary_context_current(2); }), FPT_ERR_DEVICE, "GPU 2 cannot be used");
}

TEST(StreamOfQueue, IsAskedOfTheRuntime) {
  EXPECT_EQ(stream_of_queue(1), &of_program);
  EXPECT_FAILS(test::outcome_of([] { stream_of_queue(2); }), FPT_ERR_DEVICE, "queue 2 of OpenACC has no CUDA stream");
}

}  // namespace
}  // namespace fpt
