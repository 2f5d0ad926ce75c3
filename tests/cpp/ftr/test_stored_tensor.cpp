// SPDX-License-Identifier: MIT
#include <ATen/ops/arange.h>

#include "ftr/outcome.hpp"
#include "ftr/stored_tensor.hpp"

namespace ftr {
namespace {

constexpr int64_t largest = std::numeric_limits<int64_t>::max();

class StoredTensorTest : public testing::Test {
 protected:
  at::Tensor numbers = at::arange(12.0f);

  test::Outcome view(int64_t offset, const std::vector<int64_t>& sizes, const std::vector<int64_t>& strides) const {
    return test::outcome_of([&] { (void)tensor_in_storage(numbers.storage(), at::kFloat, offset, sizes, strides); });
  }
};

TEST_F(StoredTensorTest, AViewSharesTheStorage) {
  const at::Tensor view = tensor_in_storage(numbers.storage(), at::kFloat, 1, {2, 3}, {6, 2});
  EXPECT_TRUE(view.is_alias_of(numbers));
  EXPECT_EQ(view.storage_offset(), 1);
  EXPECT_EQ(view[1][2].item<float>(), 11);
  EXPECT_FALSE(view.is_contiguous());
  EXPECT_EQ(view.contiguous().sum().item<float>(), 1 + 3 + 5 + 7 + 9 + 11);
}

TEST_F(StoredTensorTest, TheLastElementIsStillWithin) {
  EXPECT_OK(view(0, {12}, {1}));
  EXPECT_FAILS(view(0, {13}, {1}), FPT_ERR_FORMAT, "does not lie within its storage of 12 elements");
  EXPECT_OK(view(11, {}, {}));
  EXPECT_FAILS(view(12, {}, {}), FPT_ERR_FORMAT, "from element 12 on does not lie within");
  EXPECT_OK(view(12, {0, 5}, {100, 100}));
  EXPECT_FAILS(view(13, {0}, {1}), FPT_ERR_FORMAT, "does not lie within");
  EXPECT_FAILS(view(-1, {1}, {1}), FPT_ERR_FORMAT, "from element -1 on");
  EXPECT_OK(view(1, {2, 3}, {6, 2}));
  EXPECT_FAILS(view(2, {2, 3}, {6, 2}), FPT_ERR_FORMAT, "does not lie within");
}

TEST_F(StoredTensorTest, NumbersThatNoTensorHasAreRefused) {
  EXPECT_FAILS(view(0, {-1}, {1}), FPT_ERR_FORMAT, "an axis of a tensor has the size -1");
  EXPECT_FAILS(view(0, {2}, {-1}), FPT_ERR_FORMAT, "an axis of a tensor has the stride -1");
  EXPECT_FAILS(view(0, {0, -2}, {1, 1}), FPT_ERR_FORMAT, "the size -2");
  EXPECT_FAILS(view(0, {2}, {1, 1}), FPT_ERR_FORMAT, "a tensor has 1 sizes and 2 strides");
  EXPECT_FAILS(view(0, std::vector<int64_t>(65, 1), std::vector<int64_t>(65, 1)), FPT_ERR_FORMAT, "has 65 sizes");
}

TEST_F(StoredTensorTest, ProductsAndSumsThatOverflowAreRefused) {
  EXPECT_FAILS(view(0, {largest, 2}, {0, 0}), FPT_ERR_FORMAT, "has too many elements");
  EXPECT_FAILS(view(0, {int64_t{1} << 41}, {0}), FPT_ERR_FORMAT, "has too many elements");
  EXPECT_FAILS(view(0, {3}, {largest}), FPT_ERR_FORMAT, "has too many elements");
  EXPECT_FAILS(view(0, {2}, {largest}), FPT_ERR_FORMAT, "has too many elements");
  EXPECT_FAILS(view(0, {2, 2}, {largest, largest}), FPT_ERR_FORMAT, "has too many elements");
  EXPECT_FAILS(view(0, {2}, {largest - 1}), FPT_ERR_FORMAT, "does not lie within");
  EXPECT_FAILS(view(largest, {1}, {1}), FPT_ERR_FORMAT, "does not lie within");
  EXPECT_FAILS(view(0, {0, largest, largest}, {1, 1, 1}), FPT_ERR_FORMAT, "has too many elements");
  EXPECT_OK(view(0, {int64_t{1} << 40}, {0}));
}

TEST_F(StoredTensorTest, LogicalElementsAreZeroOrOne) {
  at::Tensor bytes = at::arange(3).to(at::kByte);
  const auto view = [&](int64_t size) {
    return test::outcome_of([&] { (void)tensor_in_storage(bytes.storage(), at::kBool, 0, {size}, {1}); });
  };
  EXPECT_OK(view(2));
  EXPECT_FAILS(view(3), FPT_ERR_FORMAT, "elements that are neither true nor false");
}

TEST_F(StoredTensorTest, EveryTypeHasOneName) {
  for (const char* name :
       {"DoubleStorage", "FloatStorage", "HalfStorage", "BFloat16Storage", "LongStorage", "IntStorage", "ShortStorage",
        "CharStorage", "ByteStorage", "BoolStorage", "ComplexDoubleStorage", "ComplexFloatStorage"}) {
    ASSERT_TRUE(dtype_of_storage(name)) << name;
    EXPECT_STREQ(stored_name_of(*dtype_of_storage(name)), name);
    EXPECT_FALSE(dtype_without_storage(name));
  }
  for (const char* name :
       {"uint16", "uint32", "uint64", "float8_e5m2", "float8_e4m3fn", "float8_e5m2fnuz", "float8_e4m3fnuz"}) {
    ASSERT_TRUE(dtype_without_storage(name)) << name;
    EXPECT_STREQ(stored_name_of(*dtype_without_storage(name)), name);
    EXPECT_FALSE(dtype_of_storage(name));
  }
  EXPECT_FALSE(dtype_of_storage("QInt8Storage"));
  EXPECT_EQ(stored_name_of(at::kQInt8), nullptr);
}

}  // namespace
}  // namespace ftr
