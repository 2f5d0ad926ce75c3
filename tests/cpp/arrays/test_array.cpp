// SPDX-License-Identifier: MIT
#include "arrays/array.hpp"
#include "support.hpp"

namespace fpt {
namespace {

Array shaped(std::vector<int64_t> extents, std::vector<int64_t> strides, int32_t dtype = FPT_FLOAT64) {
  static char memory[1];
  Array array;
  array.data = memory;
  array.dtype = dtype;
  array.rank = static_cast<int32_t>(extents.size());
  std::copy(extents.begin(), extents.end(), array.extents);
  std::copy(strides.begin(), strides.end(), array.strides);
  return array;
}

std::ptrdiff_t offset(const char* address, const Array& array) {
  return address - static_cast<const char*>(array.data);
}

TEST(Array, WithoutAxesHoldsOneElement) {
  EXPECT_EQ(element_count(shaped({}, {})), 1);
  EXPECT_TRUE(is_contiguous(shaped({}, {})));
  EXPECT_EQ(shape_text(shaped({}, {})), "()");
}

TEST(Array, WithAnEmptyAxisHoldsNothing) { EXPECT_EQ(element_count(shaped({3, 0, 5}, {8, 24, 24})), 0); }

TEST(Array, IsContiguousWhenTheFirstAxisIsFastestAndNothingIsLeftOut) {
  EXPECT_TRUE(is_contiguous(shaped({3, 4}, {8, 24})));
  EXPECT_FALSE(is_contiguous(shaped({3, 4}, {32, 8}))) << "C order";
  EXPECT_FALSE(is_contiguous(shaped({3, 4}, {8, 32}))) << "a gap";
  EXPECT_FALSE(is_contiguous(shaped({3}, {-8}))) << "backwards";
}

TEST(Array, StridesOfSingleElementsAndOfEmptyArraysDoNotMatter) {
  EXPECT_TRUE(is_contiguous(shaped({1, 4}, {999, 8})));
  EXPECT_TRUE(is_contiguous(shaped({3, 0}, {17, -3})));
}

TEST(Array, ShapesAreEqualWithTheSameExtentsInTheSameOrder) {
  EXPECT_TRUE(same_shape(shaped({3, 4}, {8, 24}), shaped({3, 4}, {32, 8})));
  EXPECT_FALSE(same_shape(shaped({3, 4}, {8, 24}), shaped({4, 3}, {8, 32})));
  EXPECT_FALSE(same_shape(shaped({3}, {8}), shaped({3, 1}, {8, 24}))) << "(n) is not (n,1)";
}

TEST(Array, ShapeReadsAsInPython) {
  EXPECT_EQ(shape_text(shaped({3}, {8})), "(3,)");
  EXPECT_EQ(shape_text(shaped({3, 4, 5}, {8, 24, 96})), "(3, 4, 5)");
}

TEST(Array, RangeCoversEveryElementInEitherDirection) {
  const Array forward = shaped({3, 4}, {8, 100});
  EXPECT_EQ(offset(memory_range(forward).begin, forward), 0);
  EXPECT_EQ(offset(memory_range(forward).end, forward), 2 * 8 + 3 * 100 + 8);
  const Array mixed = shaped({3, 4}, {-8, 100});
  EXPECT_EQ(offset(memory_range(mixed).begin, mixed), -16);
  EXPECT_EQ(offset(memory_range(mixed).end, mixed), 300 + 8);
}

TEST(Array, RangeOfAnEmptyArrayIsEmpty) {
  const Range range = memory_range(shaped({3, 0}, {8, 24}));
  EXPECT_EQ(range.begin, range.end);
}

TEST(Array, OverlapMeansACommonByte) {
  double memory[10];
  Array first = shaped({4}, {8}), second = first;
  first.data = memory;
  second.data = memory + 4;
  EXPECT_FALSE(overlap(first, second));
  EXPECT_FALSE(overlap(second, first));
  second.data = memory + 3;
  EXPECT_TRUE(overlap(first, second));
  second.data = memory + 7;
  second.strides[0] = -8;
  EXPECT_FALSE(overlap(first, second)) << "memory[4] to memory[7], backwards";
  second.data = memory + 6;
  EXPECT_TRUE(overlap(first, second)) << "memory[3] to memory[6], backwards";
}

TEST(Array, ReversedNamesTheSameElementsWithSwappedIndices) {
  const Array array = shaped({2, 3, 4}, {8, -16, 48});
  const Array other = reversed(array);
  EXPECT_EQ(shape_text(other), "(4, 3, 2)");
  EXPECT_EQ(other.strides[0], 48);
  EXPECT_EQ(other.strides[1], -16);
  EXPECT_EQ(other.strides[2], 8);
  EXPECT_EQ(other.data, array.data);
  EXPECT_TRUE(same_shape(reversed(other), array));
}

TEST(Array, ContiguousStridesFollowTheExtents) {
  Array array = shaped({2, 3, 4}, {0, 0, 0}, FPT_FLOAT32);
  set_contiguous(array);
  EXPECT_EQ(array.strides[0], 4);
  EXPECT_EQ(array.strides[1], 8);
  EXPECT_EQ(array.strides[2], 24);
  EXPECT_TRUE(is_contiguous(array));
}

TEST(Array, NegativeStridesAreSeenOnTheAxesThereAre) {
  EXPECT_TRUE(has_negative_stride(shaped({3, 4}, {8, -24})));
  EXPECT_FALSE(has_negative_stride(shaped({3, 4}, {8, 24})));
  Array array = shaped({3}, {8});
  array.strides[1] = -8;
  EXPECT_FALSE(has_negative_stride(array));
}

}  // namespace
}  // namespace fpt
