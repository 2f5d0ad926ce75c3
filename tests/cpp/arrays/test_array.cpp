// SPDX-License-Identifier: MIT
#include <cmath>
#include <limits>
#include <map>

#include "arrays/array.hpp"
#include "support.hpp"

namespace fpt {
namespace {

/// What an element type can hold: integers and significands exactly up to a number of bits, largest finite exponent.
struct Facts {
  bool is_integer, is_unsigned, is_complex;
  int bits;
  int exponent;
};

const std::map<int32_t, Facts> numeric = {
    {FPT_INT8, {true, false, false, 7, 7}},          {FPT_INT16, {true, false, false, 15, 15}},
    {FPT_INT32, {true, false, false, 31, 31}},       {FPT_INT64, {true, false, false, 63, 63}},
    {FPT_UINT8, {true, true, false, 8, 8}},          {FPT_FLOAT16, {false, false, false, 11, 16}},
    {FPT_BFLOAT16, {false, false, false, 8, 128}},   {FPT_FLOAT32, {false, false, false, 24, 128}},
    {FPT_FLOAT64, {false, false, false, 53, 1024}},  {FPT_COMPLEX64, {false, false, true, 24, 128}},
    {FPT_COMPLEX128, {false, false, true, 53, 1024}}};

const std::vector<int32_t> logical = {FPT_BOOL, FPT_LOGICAL16, FPT_LOGICAL32, FPT_LOGICAL64};

bool loses_nothing(const Facts& from, const Facts& to) {
  if (from.is_complex && !to.is_complex) return false;
  if (!from.is_integer && to.is_integer) return false;
  if (!from.is_unsigned && to.is_unsigned) return false;
  return from.bits <= to.bits && from.exponent <= to.exponent;
}

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

TEST(DType, HasSizeAndNames) {
  EXPECT_EQ(dtype_size(FPT_BOOL), 1u);
  EXPECT_EQ(dtype_size(FPT_INT16), 2u);
  EXPECT_EQ(dtype_size(FPT_FLOAT32), 4u);
  EXPECT_EQ(dtype_size(FPT_COMPLEX64), 8u);
  EXPECT_EQ(dtype_size(FPT_COMPLEX128), 16u);
  EXPECT_EQ(dtype_size(FPT_BFLOAT16), 2u);
  EXPECT_EQ(dtype_size(FPT_LOGICAL64), 8u);
  EXPECT_STREQ(dtype_name(FPT_COMPLEX64), "complex64");
  EXPECT_STREQ(dtype_name(FPT_UINT8), "uint8");
  EXPECT_STREQ(dtype_fortran_name(FPT_FLOAT32), "real(real32)");
  EXPECT_STREQ(dtype_fortran_name(FPT_BOOL), "logical(c_bool)");
  EXPECT_STREQ(dtype_fortran_name(FPT_TEXT), "character");
}

TEST(DType, OutsideTheListIsNothing) {
  for (const int32_t wrong : {-1, 0, 17, 1000, std::numeric_limits<int32_t>::min()}) {
    EXPECT_EQ(dtype_size(wrong), 0u);
    EXPECT_STREQ(dtype_name(wrong), "nothing");
    EXPECT_FALSE(is_widening(wrong, FPT_FLOAT64));
    EXPECT_FALSE(is_castable(FPT_FLOAT32, wrong));
  }
}

TEST(DType, GroupsAreDistinct) {
  EXPECT_TRUE(is_real(FPT_BFLOAT16));
  EXPECT_FALSE(is_real(FPT_COMPLEX64));
  EXPECT_TRUE(is_complex(FPT_COMPLEX128));
  EXPECT_FALSE(is_complex(FPT_INT8));
  EXPECT_TRUE(is_logical(FPT_BOOL));
  EXPECT_TRUE(is_logical(FPT_LOGICAL16));
  EXPECT_FALSE(is_logical(FPT_INT8));
}

TEST(DType, WidensWhereEveryValueHasAnExactCounterpart) {
  for (const auto& [from, source] : numeric)
    for (const auto& [to, target] : numeric)
      EXPECT_EQ(is_widening(from, to), loses_nothing(source, target)) << dtype_name(from) << " to " << dtype_name(to);
}

TEST(DType, CastsNeverDropAPartOfANumber) {
  for (const auto& [from, source] : numeric)
    for (const auto& [to, target] : numeric) {
      const bool drops = (source.is_complex && !target.is_complex) || (!source.is_integer && target.is_integer);
      EXPECT_EQ(is_castable(from, to), !drops) << dtype_name(from) << " to " << dtype_name(to);
    }
}

TEST(DType, LogicalConvertsToLogicalOnly) {
  for (const int32_t from : logical) {
    for (const int32_t to : logical) {
      EXPECT_TRUE(is_widening(from, to));
      EXPECT_TRUE(is_castable(from, to));
    }
    for (const auto& [number, facts] : numeric) {
      EXPECT_FALSE(is_castable(from, number)) << "logical to " << dtype_name(number);
      EXPECT_FALSE(is_castable(number, from)) << dtype_name(number) << " to logical";
    }
    EXPECT_FALSE(is_castable(from, FPT_TEXT));
  }
}

TEST(DType, TextConvertsToNothing) {
  for (const auto& [number, facts] : numeric) {
    EXPECT_FALSE(is_castable(FPT_TEXT, number));
    EXPECT_FALSE(is_castable(number, FPT_TEXT));
  }
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
