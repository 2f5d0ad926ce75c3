// SPDX-License-Identifier: MIT
#include <set>
#include <thread>

#include "support.hpp"
#include "torch/dlpack.hpp"

namespace fpt::dlpack {
namespace {

struct SlotTest : testing::Test {
  std::vector<double> values = std::vector<double>(24);
  Array array = fpt::array_of(test::array_arg(values.data(), {2, 3, 4}));

  Slot* take() { return take_slot(array, nullptr); }
  /// What torch does when the last tensor on the memory dies.
  static void die(Slot* slot) { slot->versioned.deleter(&slot->versioned); }
};

TEST_F(SlotTest, DescribesTheArrayInElements) {
  Slot* slot = take();
  const Tensor& tensor = slot->versioned.tensor;
  EXPECT_EQ(tensor.data, values.data());
  EXPECT_EQ(tensor.ndim, 3);
  EXPECT_EQ(tensor.shape[0], 2);
  EXPECT_EQ(tensor.shape[2], 4);
  EXPECT_EQ(tensor.strides[0], 1);
  EXPECT_EQ(tensor.strides[1], 2);
  EXPECT_EQ(tensor.strides[2], 6);
  EXPECT_EQ(tensor.byte_offset, 0u);
  EXPECT_EQ(tensor.device.type, 1);
  drop_slot(slot);
}

TEST_F(SlotTest, IsOfVersionOneWithoutFlags) {
  Slot* slot = take();
  EXPECT_EQ(slot->versioned.version.major, 1u);
  EXPECT_EQ(slot->versioned.flags, 0u);
  drop_slot(slot);
}

TEST_F(SlotTest, IsAliveUntilItsDeleterRuns) {
  Slot* slot = take();
  EXPECT_TRUE(slot->alive);
  slot->versioned.deleter(&slot->versioned);
  EXPECT_FALSE(slot->alive);
  slot = take();
  EXPECT_TRUE(slot->alive);
  die(slot);
}

TEST_F(SlotTest, IsUsedAgainUnderANewSerial) {
  Slot* first = take();
  const uint64_t serial = first->serial;
  die(first);
  Slot* second = take();
  EXPECT_EQ(second, first);
  EXPECT_NE(second->serial, serial);
  die(second);
}

TEST_F(SlotTest, TellsWhetherAnAddressIsMemoryOfTheCallerThatWasPassedLately) {
  Slot* before = take();
  const uint64_t serial = last_serial();
  EXPECT_FALSE(is_in_memory_of_caller(values.data(), serial)) << "passed before";
  EXPECT_TRUE(is_in_memory_of_caller(values.data(), serial - 1));
  Slot* owner = take_slot(array, allocate(64));
  EXPECT_FALSE(is_in_memory_of_caller(values.data(), serial)) << "it has an owner";
  Slot* after = take();
  EXPECT_TRUE(is_in_memory_of_caller(values.data(), serial));
  EXPECT_TRUE(is_in_memory_of_caller(values.data() + 23, serial));
  EXPECT_FALSE(is_in_memory_of_caller(values.data() + 24, serial));
  die(after);
  EXPECT_FALSE(is_in_memory_of_caller(values.data(), serial)) << "torch has let it go";
  die(before);
  die(owner);
}

TEST_F(SlotTest, LiveOnesAreDistinct) {
  std::set<Slot*> slots;
  for (int i = 0; i < 1000; ++i) slots.insert(take());
  EXPECT_EQ(slots.size(), 1000u);
  for (Slot* slot : slots) die(slot);
}

TEST_F(SlotTest, MemoryItOwnsGoesWithIt) {
  // AddressSanitizer sees it when the memory is released twice
  Slot* slot = take_slot(array, allocate(64));
  EXPECT_NE(slot->owned, nullptr);
  die(slot);
  EXPECT_EQ(slot->owned, nullptr);
}

TEST_F(SlotTest, OfAScalarHasNoAxes) {
  double value = 0;
  Slot* slot = take_slot(fpt::array_of(test::array_arg(&value, {}, FPT_OUT)), nullptr);
  EXPECT_EQ(slot->versioned.tensor.ndim, 0);
  die(slot);
}

TEST_F(SlotTest, IsFreedByAnyThreadWhileOthersAreTaken) {
  // One thread at a time takes slots, under the interpreter lock; torch's threads let tensors die without it.
  constexpr int rounds = 20000, threads_count = 4;
  std::vector<std::atomic<Slot*>> handed(threads_count);
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < threads_count; ++t)
    threads.emplace_back([&, t] {
      while (!done || handed[static_cast<std::size_t>(t)].load()) {
        if (Slot* slot = handed[static_cast<std::size_t>(t)].exchange(nullptr))
          die(slot);
        else
          std::this_thread::yield();
      }
    });
  std::set<Slot*> seen;
  for (int i = 0; i < rounds; ++i) {
    Slot* slot = take();
    ASSERT_EQ(slot->versioned.tensor.data, values.data());
    seen.insert(slot);
    auto& place = handed[static_cast<std::size_t>(i % threads_count)];
    Slot* nothing = nullptr;
    while (!place.compare_exchange_weak(nothing, slot)) {
      nothing = nullptr;
      std::this_thread::yield();
    }
  }
  done = true;
  for (auto& thread : threads) thread.join();
  EXPECT_LE(seen.size(), 1000u + 2 * threads_count) << "slots are not used again";
  for (Slot* slot : seen) EXPECT_FALSE(slot->alive);
}

TEST(DataType, OfEveryElementTypeLeadsBackToIt) {
  for (const int32_t dtype : {FPT_BOOL, FPT_INT8, FPT_INT16, FPT_INT32, FPT_INT64, FPT_FLOAT32, FPT_FLOAT64,
                              FPT_COMPLEX64, FPT_COMPLEX128, FPT_UINT8, FPT_FLOAT16, FPT_BFLOAT16})
    EXPECT_EQ(dtype_of(data_type(dtype)), dtype) << dtype_name(dtype);
}

TEST(DataType, HasTheCodesOfTheSpecification) {
  EXPECT_EQ(data_type(FPT_BOOL).code, 6);
  EXPECT_EQ(data_type(FPT_UINT8).code, 1);
  EXPECT_EQ(data_type(FPT_BFLOAT16).code, 4);
  EXPECT_EQ(data_type(FPT_COMPLEX64).code, 5);
  EXPECT_EQ(data_type(FPT_COMPLEX64).bits, 64);
  EXPECT_EQ(data_type(FPT_FLOAT64).lanes, 1);
}

TEST(DataType, WithoutCounterpartIsNone) {
  EXPECT_EQ(dtype_of({1, 16, 1}), FPT_NONE);
  EXPECT_EQ(dtype_of({2, 128, 1}), FPT_NONE);
  EXPECT_EQ(dtype_of({2, 32, 4}), FPT_NONE) << "vectors";
  EXPECT_EQ(dtype_of({6, 32, 1}), FPT_NONE);
}

struct ViewTest : testing::Test {
  double values[6] = {};
  int64_t shape[8] = {3, 2, 1, 1, 1, 1, 1, 1};
  int64_t strides[8] = {2, 1, 1, 1, 1, 1, 1, 1};
  Tensor tensor{values, Device{}, 2, {2, 64, 1}, shape, strides, 0};
};

TEST_F(ViewTest, HasStridesInBytes) {
  const Array array = array_of(tensor);
  EXPECT_EQ(array.strides[0], 16);
  EXPECT_EQ(array.strides[1], 8);
  EXPECT_TRUE(array.device.is_host());
}

TEST_F(ViewTest, WithoutStridesIsInCOrder) {
  tensor.strides = nullptr;
  EXPECT_EQ(array_of(tensor).strides[0], 16);
  EXPECT_EQ(array_of(tensor).strides[1], 8);
}

TEST_F(ViewTest, BeginsAtTheByteOffset) {
  tensor.byte_offset = 8;
  EXPECT_EQ(array_of(tensor).data, values + 1);
}

TEST_F(ViewTest, OfADeviceIsNotOnTheHost) {
  tensor.device.type = 2;
  EXPECT_FALSE(array_of(tensor).device.is_host());
}

TEST_F(ViewTest, OfEightAxesIsRefused) {
  tensor.ndim = 7;
  EXPECT_EQ(array_of(tensor).rank, 7);
  tensor.ndim = 8;
  EXPECT_FAILS(test::outcome_of([&] { array_of(tensor); }), FPT_ERR_RANK, "a tensor of 8 axes");
}

TEST_F(ViewTest, OfATypeWithoutCounterpartIsRefused) {
  tensor.dtype = {1, 32, 1};
  EXPECT_FAILS(test::outcome_of([&] { array_of(tensor); }), FPT_ERR_DTYPE, "convert it in the script");
}

}  // namespace
}  // namespace fpt::dlpack
