// SPDX-License-Identifier: MIT
/// Pinning, with a driver that the test plays. Memory of devices is refused in test_device.cpp.
#include <map>

#include "arrays/pinned.hpp"
#include "support.hpp"

namespace {

std::map<void*, std::size_t> pinned;
unsigned flags_seen = 0;
int error_of_driver = 0;  // 0: what the real one would answer

}  // namespace

#define PLAYED extern "C" __attribute__((visibility("default"), used))
PLAYED int cuMemHostRegister_v2(void* memory, std::size_t bytes, unsigned flags) {
  if (error_of_driver != 0) return error_of_driver;
  flags_seen = flags;
  return pinned.emplace(memory, bytes).second ? 0 : 712;
}
PLAYED int cuMemHostUnregister(void* memory) {
  if (error_of_driver != 0) return error_of_driver;
  return pinned.erase(memory) == 1 ? 0 : 713;
}

namespace fpt {
namespace {

struct Pinned : testing::Test {
  ~Pinned() override {
    pinned.clear();
    error_of_driver = 0;
  }
  static test::Outcome pinning(const fpt_arg& arg) {
    return test::outcome_of([&] { pin(arg); });
  }
  static test::Outcome unpinning(const fpt_arg& arg) {
    return test::outcome_of([&] { unpin(arg); });
  }
  std::vector<double> values = std::vector<double>(12);
  const fpt_arg array = test::array_arg(values.data(), {3, 4});
};

TEST_F(Pinned, MemoryIsThatOfTheWholeArrayForAllContexts) {
  EXPECT_OK(pinning(array));
  EXPECT_EQ(pinned, (std::map<void*, std::size_t>{{values.data(), 96}}));
  EXPECT_EQ(flags_seen, 1U);
  EXPECT_OK(unpinning(array));
  EXPECT_TRUE(pinned.empty());
}

TEST_F(Pinned, MemoryMayBeDescribedAsAnOutput) {
  EXPECT_OK(pinning(test::array_arg(values.data(), {12}, FPT_OUT)));
  EXPECT_OK(pinning(test::out(values[1]))) << "a scalar by reference";
  EXPECT_EQ(pinned[&values[1]], 8U);
  EXPECT_OK(unpinning(array));
}

TEST_F(Pinned, MemoryIsPinnedOnce) {
  EXPECT_OK(pinning(array));
  EXPECT_FAILS(pinning(array), FPT_ERR_ARGUMENT, "is pinned already");
  EXPECT_OK(unpinning(array));
  EXPECT_FAILS(unpinning(array), FPT_ERR_ARGUMENT, "no array that is pinned begins at this address");
}

TEST_F(Pinned, NothingIsDoneForNoElements) {
  const fpt_arg nothing = test::array_arg(values.data(), {3, 0});
  EXPECT_OK(pinning(nothing));
  EXPECT_TRUE(pinned.empty());
  EXPECT_OK(unpinning(nothing));
}

TEST_F(Pinned, IsRefusedWhereElementsDoNotFollowEachOther) {
  const fpt_arg section = test::array_arg(values.data(), {3, 2}, FPT_IN, {8, 48});
  EXPECT_FAILS(pinning(section), FPT_ERR_STRIDE, "pin the whole array");
  EXPECT_FAILS(unpinning(section), FPT_ERR_STRIDE, "pin the whole array");
}

TEST_F(Pinned, IsRefusedForWhatIsNoMemoryOfTheProgram) {
  fpt_arg copy = test::array_arg(values.data(), {12}, FPT_COPY);
  std::string text = "text";
  for (const fpt_arg& arg : {copy, test::in(1.0), test::in("text"), test::out(text)})
    EXPECT_FAILS(pinning(arg), FPT_ERR_ARGUMENT, "arrays of the program can be pinned, no tensors, copies");
  EXPECT_FAILS(pinning(test::array_arg<double>(nullptr, {3})), FPT_ERR_UNALLOCATED, "the array has no memory");
  EXPECT_TRUE(pinned.empty());
  discard_copies({&copy, 1});
}

TEST_F(Pinned, FailuresOfTheDriverHaveTheirReason) {
  error_of_driver = 201;
  EXPECT_FAILS(pinning(array), FPT_ERR_DEVICE, "call ftn_pytorch_init(device=\"cuda:0\") before");
  EXPECT_FAILS(unpinning(array), FPT_ERR_DEVICE, "call ftn_pytorch_init(device=\"cuda:0\") before");
  error_of_driver = 2;
  EXPECT_FAILS(pinning(array), FPT_ERR_MEMORY, "no memory to pin the array");
  error_of_driver = 1;
  EXPECT_FAILS(pinning(array), FPT_ERR_DEVICE, "cannot pin the array (error 1)");
  EXPECT_FAILS(unpinning(array), FPT_ERR_ARGUMENT, "no array that is pinned") << "older drivers";
  error_of_driver = 801;
  EXPECT_FAILS(unpinning(array), FPT_ERR_DEVICE, "cannot unpin the array (error 801)");
}

}  // namespace
}  // namespace fpt
