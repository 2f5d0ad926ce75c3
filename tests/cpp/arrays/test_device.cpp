// SPDX-License-Identifier: MIT
#include "arrays/device.hpp"
#include "arrays/fit.hpp"
#include "arrays/pinned.hpp"
#include "support.hpp"

namespace {

// What the driver of CUDA would answer. The core finds this function as it finds the driver's: by its name, in the
// process.
unsigned device_type = 0, is_managed = 0;
bool is_known = false;

}  // namespace

extern "C" __attribute__((visibility("default"))) int cuPointerGetAttributes(unsigned count, int* attributes,
                                                                             void** values, unsigned long long) {
  constexpr int memory_type = 2, managed = 8, ordinal = 9;
  for (unsigned i = 0; i < count; ++i)
    *static_cast<int*>(values[i]) = !is_known                      ? 0
                                    : attributes[i] == memory_type ? static_cast<int>(device_type)
                                    : attributes[i] == managed     ? static_cast<int>(is_managed)
                                    : attributes[i] == ordinal     ? 3
                                                                   : -1;
  return 0;
}

namespace fpt {
namespace {

double memory_of_all[2];

bool is_device(bool known, unsigned type, unsigned managed) {
  is_known = known;
  device_type = type;
  is_managed = managed;
  return is_device_memory(memory_of_all);
}

TEST(DeviceMemory, IsNotWhatTheDriverHasNeverSeen) { EXPECT_FALSE(is_device(false, 2, 0)); }
TEST(DeviceMemory, IsNotPinnedHostMemory) { EXPECT_FALSE(is_device(true, 1, 0)); }
TEST(DeviceMemory, IsNotManagedMemory) { EXPECT_FALSE(is_device(true, 2, 1)); }
TEST(DeviceMemory, IsMemoryOfADevice) {
  EXPECT_TRUE(is_device(true, 2, 0));
  EXPECT_EQ(device_name(device_of(memory_of_all)), "cuda:3");
}

TEST(DeviceMemory, MayHaveBeenOfTheHostBefore) {
  EXPECT_FALSE(is_device(false, 0, 0));
  EXPECT_TRUE(is_device(true, 2, 0));
  EXPECT_FALSE(is_device(false, 0, 0));
}

/// All memory is that of a device until the end of the scope.
struct Device : testing::Test {
  Device() {
    EXPECT_TRUE(is_device(true, 2, 0));
    memory[0] = memory[1] = 7;
  }
  ~Device() override { is_known = false; }
  double* memory = memory_of_all;
};

TEST_F(Device, MemoryIsNotReadWhereItIsDescribed) {
  const auto refused = [](const fpt_arg& arg) { return test::outcome_of([&] { require_described(arg, "input 1"); }); };
  EXPECT_FAILS(refused(test::array_arg(memory, {2}, FPT_COPY)), FPT_ERR_DEVICE, "input 1 is in device memory");
  EXPECT_FAILS(refused(test::array_arg(memory, {}, FPT_COPY)), FPT_ERR_DEVICE, "describe that, without use_device");
  EXPECT_FAILS(refused(test::array_arg(memory, {}, FPT_IN)), FPT_ERR_DEVICE, "input 1 is in device memory");
  fpt_arg text;
  describe_text(text, reinterpret_cast<const char*>(memory), 8, FPT_IN);
  EXPECT_FAILS(refused(text), FPT_ERR_DEVICE, "input 1 is in device memory");
  EXPECT_EQ(test::array_arg(memory, {2}, FPT_IN).status, FPT_OK) << "only its address is taken";
  EXPECT_EQ(test::array_arg(memory, {}, FPT_OUT).status, FPT_OK);
}

TEST_F(Device, MemoryIsNotWrittenByResults) {
  double value = 1;
  const Array source = array_of(test::array_arg(&value, {1}, FPT_OUT));
  const fpt_arg output = test::array_arg(memory, {1}, FPT_OUT), scalar = test::array_arg(memory, {}, FPT_OUT);
  fpt_arg text;
  describe_text(text, reinterpret_cast<const char*>(memory), 8, FPT_OUT);
  EXPECT_FALSE(copy_plainly(source, output));
  EXPECT_FALSE(fit_array(source, "Tensor", output, false, false, "it").is_on_host());
  EXPECT_FALSE(fit_scalar(1.0, scalar, "it").is_on_host());
  EXPECT_FAILS(test::outcome_of([&] { fit_scalar(std::string_view("a"), text, "it"); }), FPT_ERR_DEVICE, "use_device");
  fpt_arg logical = scalar;
  logical.dtype = FPT_LOGICAL32;
  EXPECT_FAILS(test::outcome_of([&] { fit_scalar(true, logical, "it"); }), FPT_ERR_KIND, "a type that torch does not");
  EXPECT_EQ(memory[0], 7);
}

TEST_F(Device, MemoryIsNotPinned) {
  const auto pinned = [&] { return test::outcome_of([&] { pin(test::array_arg(memory, {2})); }); };
  EXPECT_FAILS(pinned(), FPT_ERR_DEVICE, "the array is in memory of cuda:3, which GPUs reach as it is");
  is_managed = 1;
  EXPECT_FAILS(pinned(), FPT_ERR_DEVICE, "the array is in managed memory, which GPUs reach as it is");
  EXPECT_FAILS(test::outcome_of([&] { unpin(test::array_arg(memory, {2})); }), FPT_ERR_DEVICE, "managed memory");
}

}  // namespace
}  // namespace fpt
