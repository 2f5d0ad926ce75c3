// SPDX-License-Identifier: MIT
#include "python/interpreter.hpp"
#include "script.hpp"
#include "script/wish.hpp"

namespace fpt {
namespace {

using Doubles = std::vector<double>;

/// With the interpreter lock, for both frameworks.
struct WishTest : testing::TestWithParam<Framework> {
  static void SetUpTestSuite() { ensure_started(); }
  const InterpreterLock gil;
  Doubles x = {1, 2, 3, 4, 5, 6};
  const Array matrix = array_of(test::out(x, {3, 2}));
  Array seen;

  Wish wish(int32_t dtype, bool own_memory = false) const { return {GetParam(), false, dtype, own_memory, false}; }
};

INSTANTIATE_TEST_SUITE_P(Frameworks, WishTest, testing::Values(Framework::torch, Framework::numpy),
                         [](const auto& info) { return info.param == Framework::torch ? "Torch" : "NumPy"; });

TEST_P(WishTest, WithoutAWishTheScriptGetsTheMemoryItself) {
  const Made made = make_wished(matrix, wish(FPT_FLOAT64), seen);
  const View view = view_of(made.object.get());
  EXPECT_EQ(view.array.data, x.data());
  EXPECT_EQ(seen.data, x.data());
  EXPECT_EQ(shape_text(view.array), "(2, 3)") << "(3, 2) in Fortran";
  EXPECT_EQ(view.array.strides[0], 24);
}

TEST_P(WishTest, TheLayoutOfFortranIsKeptWhereThatIsWished) {
  Wish same = wish(FPT_FLOAT64);
  same.same_layout = true;
  const Made made = make_wished(matrix, same, seen);
  EXPECT_EQ(shape_text(view_of(made.object.get()).array), "(3, 2)");
}

TEST_P(WishTest, AnotherTypeIsMadeInMemoryOfTheObject) {
  const Made made = make_wished(matrix, wish(FPT_FLOAT32), seen);
  const View view = view_of(made.object.get());
  EXPECT_EQ(view.array.dtype, FPT_FLOAT32);
  EXPECT_EQ(view.array.data, seen.data) << "the way back reads what the script has written";
  EXPECT_EQ(static_cast<float*>(view.array.data)[5], 6);
  EXPECT_TRUE(is_contiguous(seen));
}

TEST_P(WishTest, ACopyIsPackedAndIndependent) {
  const Array section = array_of(test::array_arg(&x[5], {3}, FPT_OUT, {-16}));
  const Made made = make_wished(section, wish(FPT_FLOAT64, true), seen);
  x.assign(6, 0);
  const View view = view_of(made.object.get());
  EXPECT_EQ(view.array.data, seen.data);
  EXPECT_EQ(view.array.strides[0], 8) << "although torch has no negative strides";
  const auto* copied = static_cast<double*>(view.array.data);
  EXPECT_EQ(Doubles(copied, copied + 3), (Doubles{6, 4, 2}));
}

TEST_P(WishTest, ACopyMayBeEmpty) {
  const Made made = make_wished(array_of(test::out(x, {0, 2})), wish(FPT_FLOAT32), seen);
  EXPECT_EQ(shape_text(view_of(made.object.get()).array), "(2, 0)");
}

TEST(WishOfReading, IsKeptByNumPyForMemoryOfTheCallerOnly) {
  ensure_started();
  const InterpreterLock gil;
  Doubles x = {1};
  Array seen;
  for (const bool own_memory : {false, true}) {
    const Made made =
        make_wished(array_of(test::out(x)), {Framework::numpy, false, FPT_FLOAT64, own_memory, true}, seen);
    const Ref flags(PyObject_GetAttrString(made.object.get(), "flags"));
    const Ref writable(PyObject_GetAttrString(flags.get(), "writeable"));
    EXPECT_EQ(writable.get() == Py_True, own_memory);
  }
}

}  // namespace
}  // namespace fpt
