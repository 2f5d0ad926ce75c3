// SPDX-License-Identifier: MIT
#include "python/interpreter.hpp"
#include "script.hpp"
#include "script/cache.hpp"

namespace fpt {
namespace {

using Doubles = std::vector<double>;

/// With the interpreter lock, for both frameworks.
struct FormTest : testing::TestWithParam<Framework> {
  static void SetUpTestSuite() { ensure_started(); }
  const InterpreterLock gil;
  Doubles x = {1, 2, 3, 4, 5, 6};
  const Array matrix = array_of(test::out(x, {3, 2}));
  Array seen;

  ScriptForm form(int32_t dtype, bool own_memory = false) const {
    return {GetParam(), false, dtype, own_memory, false};
  }
};

INSTANTIATE_TEST_SUITE_P(Frameworks, FormTest, testing::Values(Framework::torch, Framework::numpy),
                         [](const auto& info) { return info.param == Framework::torch ? "Torch" : "NumPy"; });

TEST_P(FormTest, WithoutAnotherTheScriptGetsTheMemoryItself) {
  const ArrayObject made = make_in_form(matrix, form(FPT_FLOAT64), seen);
  const View view = view_of(made.object.get());
  EXPECT_EQ(view.array.data, x.data());
  EXPECT_EQ(seen.data, x.data());
  EXPECT_EQ(shape_text(view.array), "(2, 3)") << "(3, 2) in Fortran";
  EXPECT_EQ(view.array.strides[0], 24);
}

TEST_P(FormTest, TheLayoutOfFortranIsKeptWhereThatIsWanted) {
  ScriptForm same = form(FPT_FLOAT64);
  same.same_layout = true;
  const ArrayObject made = make_in_form(matrix, same, seen);
  EXPECT_EQ(shape_text(view_of(made.object.get()).array), "(3, 2)");
}

TEST_P(FormTest, AnotherTypeIsMadeInMemoryOfTheObject) {
  const ArrayObject made = make_in_form(matrix, form(FPT_FLOAT32), seen);
  const View view = view_of(made.object.get());
  EXPECT_EQ(view.array.dtype, FPT_FLOAT32);
  EXPECT_EQ(view.array.data, seen.data) << "the way back reads what the script has written";
  EXPECT_EQ(static_cast<float*>(view.array.data)[5], 6);
  EXPECT_TRUE(is_contiguous(seen));
}

TEST_P(FormTest, ACopyIsPackedAndIndependent) {
  const Array section = array_of(test::array_arg(&x[5], {3}, FPT_OUT, {-16}));
  const ArrayObject made = make_in_form(section, form(FPT_FLOAT64, true), seen);
  x.assign(6, 0);
  const View view = view_of(made.object.get());
  EXPECT_EQ(view.array.data, seen.data);
  EXPECT_EQ(view.array.strides[0], 8) << "although torch has no negative strides";
  const auto* copied = static_cast<double*>(view.array.data);
  EXPECT_EQ(Doubles(copied, copied + 3), (Doubles{6, 4, 2}));
}

TEST_P(FormTest, ACopyMayBeEmpty) {
  const ArrayObject made = make_in_form(array_of(test::out(x, {0, 2})), form(FPT_FLOAT32), seen);
  EXPECT_EQ(shape_text(view_of(made.object.get()).array), "(2, 0)");
}

TEST(WishOfReading, IsKeptByNumPyForMemoryOfTheCallerOnly) {
  ensure_started();
  const InterpreterLock gil;
  Doubles x = {1};
  Array seen;
  for (const bool own_memory : {false, true}) {
    const ArrayObject made =
        make_in_form(array_of(test::out(x)), {Framework::numpy, false, FPT_FLOAT64, own_memory, true}, seen);
    const Ref flags(PyObject_GetAttrString(made.object.get(), "flags"));
    const Ref writable(PyObject_GetAttrString(flags.get(), "writeable"));
    EXPECT_EQ(writable.get() == Py_True, own_memory);
  }
}

}  // namespace
}  // namespace fpt
