// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <random>

#include "arrays/copy.hpp"
#include "support.hpp"

namespace fpt {
namespace {

/// Memory for a random layout: axes in any order, gaps between them, of any direction. Guarded on both sides.
struct Layout {
  std::vector<unsigned char> memory;
  Array array;

  Layout(std::mt19937& random, int32_t dtype, const std::vector<int64_t>& extents, bool may_broadcast) {
    const auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
    const int64_t size = static_cast<int64_t>(dtype_size(dtype));
    array.dtype = dtype;
    array.rank = static_cast<int32_t>(extents.size());
    std::copy(extents.begin(), extents.end(), array.extents);
    std::vector<int> order(extents.size());
    std::iota(order.begin(), order.end(), 0);
    if (pick(0, 1)) std::shuffle(order.begin(), order.end(), random);
    int64_t stride = size * (pick(0, 2) == 0 ? 2 : 1), first = 0;
    for (const int axis : order) {
      const int64_t extent = extents[static_cast<std::size_t>(axis)];
      const bool backwards = pick(0, 3) == 0;
      const bool broadcast = may_broadcast && pick(0, 5) == 0;
      array.strides[axis] = broadcast ? 0 : backwards ? -stride : stride;
      if (broadcast) continue;
      if (backwards && extent > 0) first += (extent - 1) * stride;
      stride = stride * std::max<int64_t>(extent, 1) + size * (pick(0, 2) == 0 ? 3 : 0);
    }
    memory.resize(static_cast<std::size_t>(stride) + 2 * guard);
    array.data = memory.data() + guard + first;
  }

  static constexpr std::size_t guard = 64;
};

std::vector<int64_t> random_extents(std::mt19937& random, int rank) {
  std::vector<int64_t> extents;
  for (int i = 0; i < rank; ++i)
    extents.push_back(std::uniform_int_distribution<int64_t>(rank < 3 ? 0 : 1, rank < 3 ? 70 : 5)(random));
  return extents;
}

void for_each_index(const Array& array, const std::function<void(const int64_t*)>& visit) {
  if (element_count(array) == 0) return;
  int64_t index[FPT_MAX_RANK] = {};
  for (;;) {
    visit(index);
    int axis = 0;
    for (; axis < array.rank; ++axis) {
      if (++index[axis] < array.extents[axis]) break;
      index[axis] = 0;
    }
    if (axis == array.rank) return;
  }
}

char* element(const Array& array, const int64_t* index) {
  char* address = static_cast<char*>(array.data);
  for (int i = 0; i < array.rank; ++i) address += index[i] * array.strides[i];
  return address;
}

/// The copy as one would write it down.
void copy_naively(const Array& source, const Array& target) {
  for_each_index(target, [&](const int64_t* index) {
    std::memcpy(element(target, index), element(source, index), dtype_size(target.dtype));
  });
}

class CopyOfSameType : public testing::TestWithParam<int32_t> {};

TEST_P(CopyOfSameType, EqualsTheNaiveLoopAndTouchesNothingElse) {
  std::mt19937 random(20240607);
  for (int round = 0; round < 300; ++round) {
    const std::vector<int64_t> extents = random_extents(random, round % (FPT_MAX_RANK + 1));
    Layout source(random, GetParam(), extents, true), target(random, GetParam(), extents, false);
    for (auto& byte : source.memory) byte = static_cast<unsigned char>(random());
    for (auto& byte : target.memory) byte = static_cast<unsigned char>(random());
    const std::vector<unsigned char> before = target.memory;
    copy_naively(source.array, target.array);
    const std::vector<unsigned char> expected = target.memory;
    std::copy(before.begin(), before.end(), target.memory.begin());
    copy_same_type(source.array, target.array);
    ASSERT_EQ(target.memory, expected) << "round " << round << ", shape " << shape_text(source.array);
  }
}

INSTANTIATE_TEST_SUITE_P(AllTypes, CopyOfSameType,
                         testing::Values(FPT_BOOL, FPT_INT8, FPT_INT16, FPT_INT32, FPT_INT64, FPT_FLOAT32, FPT_FLOAT64,
                                         FPT_COMPLEX64, FPT_COMPLEX128, FPT_UINT8),
                         [](const auto& info) { return std::string(dtype_name(info.param)); });

TEST(Copy, OfATransposedMatrixInBlocksReachesEveryElement) {
  // sizes around the block length of the loop, where its ends are
  for (const int64_t rows : {1, 31, 32, 33, 100})
    for (const int64_t columns : {1, 31, 32, 33, 64}) {
      std::vector<double> source(static_cast<std::size_t>(rows * columns)), target(source.size());
      std::iota(source.begin(), source.end(), 0.0);
      const fpt_arg from = test::array_arg(source.data(), {rows, columns}, FPT_IN, {8 * columns, 8});
      copy(array_of(from), array_of(test::array_arg(target.data(), {rows, columns}, FPT_OUT)));
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t k = 0; k < columns; ++k)
          ASSERT_EQ(target[static_cast<std::size_t>(i + rows * k)], static_cast<double>(i * columns + k));
    }
}

TEST(Copy, OfNothingTouchesNothing) {
  double source = 1, target = 2;
  copy(array_of(test::array_arg(&source, {0, 5})), array_of(test::array_arg(&target, {0, 5})));
  float narrow = 3;
  copy(array_of(test::array_arg(&source, {3, 0})), array_of(test::array_arg(&narrow, {3, 0})));
  EXPECT_EQ(target, 2);
  EXPECT_EQ(narrow, 3);
}

template <class T>
std::vector<T> samples() {
  if constexpr (std::is_integral_v<T>) {
    return {0, 1, std::numeric_limits<T>::min(), std::numeric_limits<T>::max(), 100};
  } else if constexpr (std::is_floating_point_v<T>) {
    return {T(0),
            T(1.5),
            T(-2.25),
            std::numeric_limits<T>::denorm_min(),
            std::numeric_limits<float>::max(),
            std::numeric_limits<T>::infinity(),
            T(0.1)};
  } else {
    using Part = typename T::value_type;
    return {T(0), T(Part(1.5), Part(-2.25)), T(Part(0.1), Part(7))};
  }
}

/// The samples of From, backwards and two apart, become what C++ makes of them.
template <class From, class To>
void expect_conversion() {
  const std::vector<From> values = samples<From>();
  const std::size_t n = values.size();
  std::vector<From> source(2 * n);
  for (std::size_t i = 0; i < n; ++i) source[2 * (n - 1 - i)] = values[i];
  std::vector<To> target(n + 1, To(42));
  const int64_t count = static_cast<int64_t>(n), size = static_cast<int64_t>(sizeof(From));
  Array from = array_of(test::array_arg(source.data(), {count})),
        to = array_of(test::array_arg(target.data(), {count}));
  from.data = &source[2 * (n - 1)];
  from.strides[0] = -2 * size;
  from.dtype = test::dtype_for<From>();
  to.dtype = test::dtype_for<To>();
  from.rank = to.rank = 1;
  from.extents[0] = to.extents[0] = count;
  to.strides[0] = sizeof(To);
  copy_converted(from, to);
  for (std::size_t i = 0; i < n; ++i)
    EXPECT_EQ(target[i], static_cast<To>(values[i]))
        << dtype_name(from.dtype) << " to " << dtype_name(to.dtype) << ", " << i;
  EXPECT_EQ(target[n], To(42)) << "written beyond the end";
}

template <class From>
void expect_conversions() {
  if constexpr (std::is_integral_v<From>) {
    expect_conversion<From, int8_t>();
    expect_conversion<From, int16_t>();
    expect_conversion<From, int32_t>();
    expect_conversion<From, int64_t>();
  }
  if constexpr (std::is_arithmetic_v<From>) {
    expect_conversion<From, float>();
    expect_conversion<From, double>();
  }
  expect_conversion<From, std::complex<float>>();
  expect_conversion<From, std::complex<double>>();
}

TEST(CopyConverted, OfIntegers) {
  expect_conversions<int8_t>();
  expect_conversions<int16_t>();
  expect_conversions<int32_t>();
  expect_conversions<int64_t>();
  expect_conversions<uint8_t>();
}

TEST(CopyConverted, OfReals) {
  expect_conversions<float>();
  expect_conversions<double>();
}

TEST(CopyConverted, OfComplexNumbers) {
  expect_conversions<std::complex<float>>();
  expect_conversions<std::complex<double>>();
}

template <class T>
void expect_logical(int32_t kind) {
  unsigned char truth[3] = {1, 0, 1};
  T target[3] = {7, 7, 7};
  Array from = array_of(test::array_arg(truth, {3})), to = array_of(test::array_arg(target, {3}));
  from.dtype = FPT_BOOL;
  from.rank = to.rank = 1;
  from.extents[0] = to.extents[0] = 3;
  from.strides[0] = 1;
  to.dtype = kind;
  to.strides[0] = sizeof(T);
  copy_converted(from, to);
  EXPECT_EQ(target[0], 1);
  EXPECT_EQ(target[1], 0);
  EXPECT_EQ(target[2], 1);
}

TEST(CopyConverted, OfBoolsIntoLogicalOfEveryKind) {
  expect_logical<int16_t>(FPT_LOGICAL16);
  expect_logical<int32_t>(FPT_LOGICAL32);
  expect_logical<int64_t>(FPT_LOGICAL64);
}

TEST(CopyConverted, EqualsTheNaiveLoopForRandomShapes) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    const std::vector<int64_t> extents = random_extents(random, round % (FPT_MAX_RANK + 1));
    Layout source(random, FPT_FLOAT32, extents, true), target(random, FPT_FLOAT64, extents, false);
    for_each_index(source.array, [&](const int64_t* index) {
      const float value = static_cast<float>(random());
      std::memcpy(element(source.array, index), &value, sizeof value);
    });
    copy(source.array, target.array);
    for_each_index(target.array, [&](const int64_t* index) {
      float expected;
      double found;
      std::memcpy(&expected, element(source.array, index), sizeof expected);
      std::memcpy(&found, element(target.array, index), sizeof found);
      ASSERT_EQ(found, static_cast<double>(expected)) << "round " << round << ", shape " << shape_text(source.array);
    });
  }
}

TEST(CopyConverted, ThatIsNotCastableIsADefect) {
  double source = 1;
  int32_t target = 2;
  const auto outcome = test::outcome_of(
      [&] { copy(array_of(test::array_arg(&source, {}, FPT_OUT)), array_of(test::array_arg(&target, {}, FPT_OUT))); });
  EXPECT_FAILS(outcome, FPT_ERR_INTERNAL, "no conversion from float64 to int32");
  EXPECT_EQ(target, 2);
}

TEST(CopyBack, OfTheSameTypeIsACopy) {
  std::vector<double> seen = {1, 2}, x(4, -1);
  copy_back(array_of(test::out(seen)), array_of(test::array_arg(&x[3], {2}, FPT_OUT, {-16})));
  EXPECT_EQ(x, (std::vector<double>{-1, 2, -1, 1}));
}

TEST(CopyBack, OfAConversionTouchesOnlyWhatTheScriptHasChanged) {
  std::vector<double> x = {0.1, 0.2, 0.3};
  std::vector<float> seen = {0.1f, 7, 0.3f};
  copy_back(array_of(test::out(seen)), array_of(test::out(x)));
  EXPECT_EQ(x, (std::vector<double>{0.1, 7, 0.3})) << "not rounded";
}

TEST(CopyBack, OfNothingChangedLeavesEveryBitAlone) {
  std::vector<double> x = {0.1, std::nan("17"), -0.0}, before = x;
  std::vector<float> seen(x.begin(), x.end());
  copy_back(array_of(test::out(seen)), array_of(test::out(x)));
  EXPECT_EQ(std::memcmp(x.data(), before.data(), sizeof(double) * 3), 0);
}

TEST(CopyBack, SeesTheSignOfZero) {
  std::vector<double> x = {0.0};
  std::vector<float> seen = {-0.0f};
  copy_back(array_of(test::out(seen)), array_of(test::out(x)));
  EXPECT_TRUE(std::signbit(x[0]));
}

TEST(CopyBack, OfAConversionReachesEveryStride) {
  std::vector<double> x = {0.1, 0.2, 0.3, 0.4};
  std::vector<float> seen = {9, 0.1f};  // of x(3), x(1), in this order
  copy_back(array_of(test::out(seen)), array_of(test::array_arg(&x[2], {2}, FPT_OUT, {-16})));
  EXPECT_EQ(x, (std::vector<double>{0.1, 0.2, 9, 0.4}));
}

}  // namespace
}  // namespace fpt
