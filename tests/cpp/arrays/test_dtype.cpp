// SPDX-License-Identifier: MIT
#include <limits>
#include <map>

#include "arrays/dtype.hpp"
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

TEST(DType, HalfPrecisionIsRealOfTwoBytes) {
  EXPECT_TRUE(is_half(FPT_FLOAT16));
  EXPECT_TRUE(is_half(FPT_BFLOAT16));
  EXPECT_FALSE(is_half(FPT_FLOAT32));
  EXPECT_FALSE(is_half(FPT_INT16));
}

TEST(DType, SomeAreOfResultsOrOfFortranOnly) {
  for (const int32_t dtype : {FPT_UINT8, FPT_FLOAT16, FPT_BFLOAT16}) {
    EXPECT_FALSE(is_argument(dtype)) << dtype_name(dtype);
    EXPECT_TRUE(is_of_tensors(dtype)) << dtype_name(dtype);
  }
  for (const int32_t dtype :
       std::vector<int32_t>{FPT_NONE, FPT_TEXT, FPT_LOGICAL16, FPT_LOGICAL32, FPT_LOGICAL64, -1, 17})
    EXPECT_FALSE(is_of_tensors(dtype)) << dtype;
  EXPECT_TRUE(is_argument(FPT_BOOL));
}

TEST(DType, IsFoundByWhatIsKnownOfIt) {
  EXPECT_EQ(find_dtype([](const DtypeFacts& facts) { return facts.torch_scalar_type == 9; }), FPT_COMPLEX64);
  EXPECT_EQ(find_dtype([](const DtypeFacts& facts) { return facts.buffer_format == 'B'; }), FPT_UINT8);
  EXPECT_EQ(find_dtype([](const DtypeFacts& facts) { return facts.group == DtypeGroup::fortran_logical; }), FPT_NONE)
      << "no tensor has it";
}

TEST(DType, IsToldApartByDlpackAndByTorch) {
  for (int32_t a = 0; a < dtype_count; ++a)
    for (int32_t b = 0; b < a; ++b) {
      if (!is_of_tensors(a) || !is_of_tensors(b)) continue;
      const DtypeFacts &one = dtype_facts(a), &other = dtype_facts(b);
      EXPECT_NE(one.torch_scalar_type, other.torch_scalar_type) << one.name << ", " << other.name;
      EXPECT_FALSE(one.dlpack_code == other.dlpack_code && one.size == other.size) << one.name << ", " << other.name;
    }
}

TEST(DType, CastChangesThePrecisionOfRealAndComplexNumbersOnly) {
  EXPECT_EQ(cast_dtype(FPT_FLOAT64, FPT_FLOAT32), FPT_FLOAT32);
  EXPECT_EQ(cast_dtype(FPT_FLOAT32, FPT_FLOAT64), FPT_FLOAT64);
  EXPECT_EQ(cast_dtype(FPT_COMPLEX128, FPT_FLOAT32), FPT_COMPLEX64);
  EXPECT_EQ(cast_dtype(FPT_COMPLEX64, FPT_FLOAT64), FPT_COMPLEX128);
  for (const int32_t dtype : {FPT_INT32, FPT_BOOL, FPT_TEXT, FPT_LOGICAL32})
    EXPECT_EQ(cast_dtype(dtype, FPT_FLOAT32), dtype);
  EXPECT_EQ(cast_dtype(FPT_FLOAT64, FPT_NONE), FPT_FLOAT64);
}

TEST(DType, HasATypeOfCppOfItsSizeWhereThereIsOne) {
  for (int32_t dtype = FPT_BOOL; dtype < dtype_count; ++dtype) {
    std::size_t size = 0;
    const bool visited = with_type(dtype, [&size](auto element) { size = sizeof element; });
    EXPECT_EQ(visited, dtype != FPT_TEXT && !is_half(dtype)) << dtype_name(dtype);
    EXPECT_EQ(size, visited ? dtype_size(dtype) : 0) << dtype_name(dtype);
  }
}

}  // namespace
}  // namespace fpt
