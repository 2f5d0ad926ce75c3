// SPDX-License-Identifier: MIT
#include "arrays/device.hpp"
#include "support.hpp"

namespace {

// What the driver of CUDA would answer. The core finds this function as it finds the driver's: by its name, in the
// process.
unsigned device_type = 0, is_managed = 0;
bool is_known = false;

}  // namespace

extern "C" __attribute__((visibility("default"))) int cuPointerGetAttribute(void* data, int attribute,
                                                                            unsigned long long) {
  constexpr int memory_type = 2, managed = 8;
  if (!is_known) return 1;  // CUDA_ERROR_INVALID_VALUE: memory that the driver has never seen
  if (attribute == memory_type) *static_cast<unsigned*>(data) = device_type;
  if (attribute == managed) *static_cast<unsigned*>(data) = is_managed;
  return 0;
}

namespace fpt {
namespace {

bool is_device(bool known, unsigned type, unsigned managed) {
  is_known = known;
  device_type = type;
  is_managed = managed;
  double memory = 0;
  return is_device_memory(&memory);
}

TEST(DeviceMemory, IsNotWhatTheDriverHasNeverSeen) { EXPECT_FALSE(is_device(false, 2, 0)); }
TEST(DeviceMemory, IsNotPinnedHostMemory) { EXPECT_FALSE(is_device(true, 1, 0)); }
TEST(DeviceMemory, IsNotManagedMemory) { EXPECT_FALSE(is_device(true, 2, 1)); }
TEST(DeviceMemory, IsMemoryOfADevice) { EXPECT_TRUE(is_device(true, 2, 0)); }

}  // namespace
}  // namespace fpt
