// SPDX-License-Identifier: MIT
#include <cstring>
#include <limits>

#include "arrays/arg.hpp"
#include "support.hpp"

namespace fpt {
namespace {

using test::array_arg;

test::Outcome required(const fpt_arg& arg) {
  return test::outcome_of([&] { require_described(arg, "input 1"); });
}

fpt_arg text_arg(const std::string& text, int64_t length, int32_t access = FPT_IN) {
  fpt_arg arg;
  describe_text(arg, text.data(), length, access);
  return arg;
}

fpt_arg text_arg(const std::string& text) { return text_arg(text, static_cast<int64_t>(text.size())); }

template <class T>
T value_in(const fpt_arg& arg) {
  T value;
  std::memcpy(&value, arg.u.value, sizeof value);
  return value;
}

TEST(Arg, Is256BytesOfPlainData) {
  EXPECT_EQ(sizeof(fpt_arg), 256u);
  EXPECT_TRUE(std::is_trivially_copyable_v<fpt_arg>);
}

TEST(Arg, OfAnArrayRefersToItsMemory) {
  double values[6] = {};
  const fpt_arg arg = array_arg(values, {2, 3});
  EXPECT_EQ(arg.status, FPT_OK);
  const Array array = array_of(arg);
  EXPECT_EQ(array.data, values);
  EXPECT_EQ(array.dtype, FPT_FLOAT64);
  EXPECT_EQ(shape_text(array), "(2, 3)");
  EXPECT_TRUE(is_contiguous(array));
  EXPECT_EQ(arg.handle, 0);
}

TEST(Arg, LeavesNothingOfWhatWasThereBefore) {
  double value = 1;
  fpt_arg arg;
  std::memset(&arg, 0xFF, sizeof arg);
  describe_array(arg, &value, FPT_FLOAT64, 0, nullptr, nullptr, FPT_IN);
  EXPECT_EQ(arg.name[0], '\0');
  EXPECT_EQ(arg.handle, 0);
  for (const int64_t spare : arg.spare) EXPECT_EQ(spare, 0);
}

TEST(Arg, OfAnArrayKeepsStridesOfAnySign) {
  float values[20] = {};
  const fpt_arg arg = array_arg(values + 19, {5, 2}, FPT_IN, {-16, -4});
  EXPECT_EQ(arg.status, FPT_OK);
  EXPECT_EQ(array_of(arg).strides[0], -16);
  EXPECT_EQ(array_of(arg).strides[1], -4);
}

TEST(Arg, OfAZeroSizeArrayIsFine) {
  double value = 0;
  EXPECT_EQ(array_arg(&value, {0}).status, FPT_OK);
  EXPECT_EQ(array_arg(&value, {3, 0, 2}).status, FPT_OK);
}

TEST(Arg, OfAScalarInputKeepsItsValue) {
  double value = 1.5;
  const fpt_arg arg = array_arg(&value, {}, FPT_IN);
  value = 2.5;
  EXPECT_EQ(value_in<double>(arg), 1.5);
}

TEST(Arg, OfAScalarOutputRefersToTheVariable) {
  double value = 1.5;
  EXPECT_EQ(array_of(array_arg(&value, {}, FPT_OUT)).data, &value);
}

TEST(Arg, OfALogicalScalarOfAnyKindIsABool) {
  const int64_t wide = -1;
  const int32_t no = 0;
  const int16_t high_byte = 0x100;
  fpt_arg arg;
  EXPECT_EQ(describe_array(arg, const_cast<int64_t*>(&wide), FPT_LOGICAL64, 0, nullptr, nullptr, FPT_IN), FPT_OK);
  EXPECT_EQ(arg.dtype, FPT_BOOL);
  EXPECT_EQ(arg.u.value[0], 1);
  EXPECT_EQ(describe_array(arg, const_cast<int32_t*>(&no), FPT_LOGICAL32, 0, nullptr, nullptr, FPT_IN), FPT_OK);
  EXPECT_EQ(arg.u.value[0], 0);
  EXPECT_EQ(describe_array(arg, const_cast<int16_t*>(&high_byte), FPT_LOGICAL16, 0, nullptr, nullptr, FPT_IN), FPT_OK);
  EXPECT_EQ(arg.u.value[0], 1);
}

TEST(Arg, OfNoMemoryIsUnallocated) {
  const fpt_arg arg = array_arg<double>(nullptr, {3});
  EXPECT_EQ(arg.status, FPT_ERR_UNALLOCATED);
  EXPECT_FAILS(required(arg), FPT_ERR_UNALLOCATED, "input 1 has no memory: allocate the array");
}

TEST(Arg, MemoryIsLookedAtBeforeExtents) {
  EXPECT_EQ(array_arg<double>(nullptr, {-7, -7}).status, FPT_ERR_UNALLOCATED);
}

TEST(Arg, HasAtMostSevenAxes) {
  double value = 0;
  EXPECT_EQ(array_arg(&value, std::vector<int64_t>(7, 1)).status, FPT_OK);
  const fpt_arg arg = array_arg(&value, std::vector<int64_t>(8, 1));
  EXPECT_FAILS(required(arg), FPT_ERR_RANK, "has rank 8; at most 7 axes");
  fpt_arg negative;
  EXPECT_EQ(describe_array(negative, &value, FPT_FLOAT64, -1, nullptr, nullptr, FPT_IN), FPT_ERR_RANK);
}

TEST(Arg, OfAnUnknownTypeIsRefused) {
  double value = 0;
  for (const int32_t wrong : {-1, 0, int{FPT_TEXT}, int{FPT_UINT8}, int{FPT_FLOAT16}, int{FPT_BFLOAT16}, 17, 65537}) {
    fpt_arg arg;
    EXPECT_EQ(describe_array(arg, &value, wrong, 0, nullptr, nullptr, FPT_IN), FPT_ERR_KIND) << wrong;
    EXPECT_FAILS(required(arg), FPT_ERR_KIND, "that torch and NumPy do not have (type code " + std::to_string(wrong));
  }
}

TEST(Arg, OfATypeThatTheCompilerNamesIsToldByThatName) {
  double value = 0;
  fpt_arg arg;
  describe_array(arg, &value, FPT_NONE, 0, nullptr, nullptr, FPT_IN);
  std::strcpy(arg.u.text, "real(kind=16)");
  EXPECT_FAILS(required(arg), FPT_ERR_KIND, "that torch and NumPy do not have (real(kind=16)); integer(1,2,4,8)");
}

TEST(Arg, OfAnAccessThatIsNoneIsRefused) {
  double value = 0;
  const int64_t extent = 1;
  for (const int32_t wrong : {-1, 3, 256, 258, INT32_MAX}) {
    const std::string text = "described with the access " + std::to_string(wrong);
    fpt_arg arg;
    EXPECT_EQ(describe_array(arg, &value, FPT_FLOAT64, 1, &extent, nullptr, wrong), FPT_ERR_ARGUMENT);
    EXPECT_FAILS(required(arg), FPT_ERR_ARGUMENT, text);
    EXPECT_EQ(describe_text(arg, "text", 4, wrong), FPT_ERR_ARGUMENT);
    EXPECT_FAILS(required(arg), FPT_ERR_ARGUMENT, text);
  }
}

TEST(Arg, OfADefaultLogicalArrayIsRefusedWithAdvice) {
  int32_t values[3] = {};
  const int64_t extent = 3;
  for (const int32_t kind : {FPT_LOGICAL16, FPT_LOGICAL32, FPT_LOGICAL64}) {
    fpt_arg arg;
    describe_array(arg, values, kind, 1, &extent, nullptr, FPT_IN);
    EXPECT_FAILS(required(arg), FPT_ERR_KIND,
                 "only logical(c_bool) arrays can be passed: write torch_copy(logical(x, c_bool))");
    describe_array(arg, values, kind, 1, &extent, nullptr, FPT_OUT);
    EXPECT_FAILS(required(arg), FPT_ERR_KIND, "can be passed: declare one");
  }
}

TEST(Arg, WithANegativeExtentIsRefused) {
  double value = 0;
  EXPECT_FAILS(required(array_arg(&value, {3, -1})), FPT_ERR_ARGUMENT, "assumed-size arrays need an explicit section");
}

TEST(Arg, WithMoreElementsThanCanBeCountedIsRefused) {
  double value = 0;
  const int64_t huge = std::numeric_limits<int64_t>::max() / 2;
  for (const int32_t access : {FPT_IN, FPT_OUT, FPT_COPY})
    EXPECT_EQ(array_arg(&value, {huge, huge}, access).status, FPT_ERR_ARGUMENT) << access;
}

TEST(Arg, BeyondTheLastAddressIsRefused) {
  int8_t value = 0;
  for (const int32_t access : {FPT_IN, FPT_OUT, FPT_COPY})
    EXPECT_EQ(array_arg(&value, {std::numeric_limits<int64_t>::max()}, access).status, FPT_ERR_ARGUMENT) << access;
}

TEST(Arg, WithAStrideBetweenElementsIsRefused) {
  double values[3] = {};
  const fpt_arg arg = array_arg(values, {2}, FPT_IN, {12});
  EXPECT_FAILS(required(arg), FPT_ERR_STRIDE, "8 bytes every 12 bytes, which no tensor can express: pass torch_copy");
  // a copy cannot receive anything
  EXPECT_FAILS(required(array_arg(values, {2}, FPT_OUT, {12})), FPT_ERR_STRIDE, "express: pass an array of its own");
}

TEST(Arg, TheStrideOfASingleElementDoesNotMatter) {
  double values[3] = {};
  EXPECT_EQ(array_arg(values, {1}, FPT_IN, {12}).status, FPT_OK);
}

TEST(Arg, WithAnUnknownAccessIsRefused) {
  double value = 0;
  EXPECT_EQ(array_arg(&value, {}, 3).status, FPT_ERR_ARGUMENT);
  EXPECT_EQ(array_arg(&value, {}, -1).status, FPT_ERR_ARGUMENT);
}

TEST(ArgText, UpTo111CharactersIsInside) {
  const std::string text(111, 'x');
  const fpt_arg arg = text_arg(text);
  EXPECT_EQ(arg.data, nullptr);
  EXPECT_EQ(text_of(arg), text);
}

TEST(ArgText, LongerIsInternedOnceAndOutlivesTheCaller) {
  fpt_arg one, two;
  {
    const std::string text(112, 'y');
    one = text_arg(text);
  }
  two = text_arg(std::string(112, 'y') + "   ");
  EXPECT_EQ(text_of(one), std::string(112, 'y'));
  EXPECT_EQ(one.data, two.data);
}

TEST(ArgText, TrailingBlanksDoNotCount) {
  EXPECT_EQ(text_of(text_arg("ab c   ")), "ab c");
  EXPECT_EQ(text_of(text_arg("    ")), "");
  EXPECT_EQ(text_of(text_arg("  x")), "  x");
  EXPECT_EQ(text_of(text_arg(std::string(50, 'a') + std::string(200, ' '))).size(), 50u);
}

TEST(ArgText, AsOutputRefersToTheWholeVariable) {
  std::string variable(200, ' ');
  fpt_arg arg;
  EXPECT_EQ(describe_text(arg, variable.data(), 200, FPT_OUT), FPT_OK);
  EXPECT_EQ(arg.data, variable.data());
  EXPECT_EQ(arg.length, 200);
}

TEST(ArgText, WithoutMemoryOrWithANegativeLengthIsRefused) {
  fpt_arg arg;
  EXPECT_EQ(describe_text(arg, nullptr, 0, FPT_IN), FPT_ERR_UNALLOCATED);
  EXPECT_EQ(describe_text(arg, "x", -1, FPT_IN), FPT_ERR_ARGUMENT);
}

TEST(ArgName, MayHave63Characters) {
  const std::string name(63, 'n');
  const fpt_arg arg = test::named(name + "    ", test::in(1.0));
  EXPECT_EQ(arg.status, FPT_OK);
  EXPECT_EQ(arg.name, name);
}

TEST(ArgName, Of64CharactersIsRefusedAndShown) {
  const fpt_arg arg = test::named(std::string(64, 'n'), test::in(1.0));
  EXPECT_FAILS(required(arg), FPT_ERR_ARGUMENT, "has 64 characters; at most 63");
  EXPECT_FAILS(required(arg), FPT_ERR_ARGUMENT, std::string(63, 'n') + "...");
}

TEST(ArgName, EmptyOrBlankIsRefused) {
  EXPECT_FAILS(required(test::named("", test::in(1.0))), FPT_ERR_ARGUMENT, "its name is empty");
  EXPECT_FAILS(required(test::named("   ", test::in(1.0))), FPT_ERR_ARGUMENT, "its name is empty");
}

TEST(ArgName, ReplacesAnEarlierOneCompletely) {
  EXPECT_STREQ(test::named("dt", test::named("temperature", test::in(1.0))).name, "dt");
}

TEST(ArgName, DoesNotHideAnEarlierFailure) {
  const fpt_arg none = array_arg<double>(nullptr, {1});
  EXPECT_FAILS(required(test::named("dt", none)), FPT_ERR_UNALLOCATED, "no memory");
  EXPECT_FAILS(required(test::named("", none)), FPT_ERR_UNALLOCATED, "no memory");
}

TEST(ArgCopy, TakesTheValuesAtOnce) {
  double values[4] = {1, 2, 3, 4};
  const fpt_arg arg = array_arg(values, {2, 2}, FPT_COPY);
  values[0] = 9;
  const Array array = array_of(arg);
  EXPECT_NE(array.data, values);
  EXPECT_TRUE(is_contiguous(array));
  EXPECT_EQ(static_cast<double*>(array.data)[0], 1);
  claim_copy(arg);
}

TEST(ArgCopy, OfNegativeStridesRunsForward) {
  int32_t values[6] = {1, 2, 3, 4, 5, 6};
  const fpt_arg arg = array_arg(values + 5, {3, 2}, FPT_COPY, {-4, -12});
  ASSERT_EQ(arg.status, FPT_OK);
  const int32_t expected[6] = {6, 5, 4, 3, 2, 1};
  EXPECT_EQ(std::memcmp(array_of(arg).data, expected, sizeof expected), 0);
  EXPECT_FALSE(has_negative_stride(array_of(arg)));
  claim_copy(arg);
}

TEST(ArgCopy, OfElementsBetweenOthersPacksThem) {
  // what the error text for such strides advises
  unsigned char records[24] = {};
  const double one = 1, two = 2;
  std::memcpy(records, &one, 8);
  std::memcpy(records + 12, &two, 8);
  fpt_arg arg;
  const int64_t extent = 2, stride = 12;
  ASSERT_EQ(describe_array(arg, records, FPT_FLOAT64, 1, &extent, &stride, FPT_COPY), FPT_OK);
  const double expected[2] = {1, 2};
  EXPECT_EQ(std::memcmp(array_of(arg).data, expected, sizeof expected), 0);
  claim_copy(arg);
}

TEST(ArgCopy, CanBeClaimedOnce) {
  double values[2] = {1, 2};
  const fpt_arg arg = array_arg(values, {2}, FPT_COPY), again = arg;
  EXPECT_NE(claim_copy(arg), nullptr);
  EXPECT_FAILS(test::outcome_of([&] { claim_copy(again); }), FPT_ERR_FREED, "torch_copy lives for one call");
}

TEST(ArgCopy, OfAZeroSizeArrayHasMemoryToo) {
  double value = 0;
  const fpt_arg arg = array_arg(&value, {0, 3}, FPT_COPY);
  ASSERT_EQ(arg.status, FPT_OK);
  EXPECT_NE(claim_copy(arg), nullptr);
}

TEST(ArgCopy, OfAScalarNeedsNoStorage) {
  EXPECT_EQ(claim_copy(array_arg(std::vector<double>{1.0}.data(), {}, FPT_COPY)), nullptr);
}

TEST(ArgCopy, IsRefusedWhereMillionsWereNeverUsed) {
  double values[] = {1, 2};
  const uint32_t usual = copies().limit_to(1);
  std::vector<fpt_arg> unused;
  do unused.push_back(array_arg(values, {2}, FPT_COPY));
  while (unused.back().status == FPT_OK && unused.size() <= CopyTable::chunk_size);
  copies().limit_to(usual);
  EXPECT_EQ(unused.back().status, FPT_ERR_MEMORY);
  EXPECT_EQ(unused.back().handle, 0);
  EXPECT_FAILS(required(unused.back()), FPT_ERR_MEMORY, "only where a call with it follows");
  discard_copies(unused);
  EXPECT_NE(claim_copy(array_arg(values, {2}, FPT_COPY)), nullptr);
}

TEST(ArgCopy, ThatDoesNotFitIntoMemoryIsRefused) {
  double value = 0;
  const fpt_arg arg = array_arg(&value, {int64_t{1} << 59}, FPT_COPY, {0});
  EXPECT_FAILS(required(arg), FPT_ERR_MEMORY, "no memory for a copy of input 1 (4611686018427387904 bytes)");
}

TEST(Allocate, GivesMemoryForVectorInstructions) {
  for (const std::size_t bytes : {0, 1, 63, 64, 65, 4096}) {
    const Storage storage = allocate(bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(storage.get()) % 64, 0u);
    std::memset(storage.get(), 1, bytes);
  }
}

TEST(Allocate, OfTooMuchThrows) {
  EXPECT_THROW(allocate(std::numeric_limits<std::size_t>::max()), std::bad_alloc);
  EXPECT_THROW(allocate(std::numeric_limits<std::size_t>::max() - 64), std::bad_alloc);
}

TEST(Trimmed, ToleratesNothing) {
  EXPECT_EQ(trimmed(nullptr, 5), "");
  EXPECT_EQ(trimmed("abc", -1), "");
  EXPECT_EQ(trimmed("abc  ", 5), "abc");
}

}  // namespace
}  // namespace fpt
