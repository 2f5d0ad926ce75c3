// SPDX-License-Identifier: MIT
/// One result into one variable: which types and values are taken, and which are refused.
#include <cmath>
#include <limits>

#include "script.hpp"
#include "script/script_answer.hpp"

namespace fpt {
namespace {

using test::in;
using test::option;
using test::out;
using test::Script;

const char* const source = R"(
import torch
def value(expression): return eval(expression)
)";

struct ConvertTest : testing::Test {
  static void SetUpTestSuite() { script_ = new Script(source); }
  static void TearDownTestSuite() { delete script_; }

  static test::Outcome value(const std::string& expression, fpt_arg output) {
    return script_->call("value", {in(expression.c_str())}, {output});
  }

  /// The variable after `expression` was delivered into it.
  template <class T>
  static T delivered(const std::string& expression) {
    T variable{};
    EXPECT_OK(value(expression, out(variable))) << expression;
    return variable;
  }

  /// A refused value leaves the variable alone.
  template <class T>
  static test::Outcome refused(const std::string& expression) {
    T variable = T(77);
    const test::Outcome outcome = value(expression, out(variable));
    EXPECT_EQ(variable, T(77)) << expression;
    return outcome;
  }

  template <class T>
  static fpt_arg logical(T& variable, int32_t kind) {
    fpt_arg arg;
    fpt_arg_array(&arg, &variable, kind, 0, nullptr, nullptr, FPT_OUT);
    return arg;
  }

 private:
  static Script* script_;
};

Script* ConvertTest::script_ = nullptr;

TEST_F(ConvertTest, PythonNumbersFitIntoEveryWidth) {
  EXPECT_EQ(delivered<int8_t>("-128"), -128);
  EXPECT_EQ(delivered<int16_t>("32767"), 32767);
  EXPECT_EQ(delivered<int32_t>("-2**31"), std::numeric_limits<int32_t>::min());
  EXPECT_EQ(delivered<int64_t>("2**63 - 1"), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(delivered<float>("0.5"), 0.5f);
  EXPECT_EQ(delivered<double>("0.1"), 0.1);
  EXPECT_EQ(delivered<double>("3"), 3.0);
  EXPECT_EQ(delivered<float>("2**24"), 16777216.0f);
  EXPECT_EQ(delivered<std::complex<float>>("1-2j"), std::complex<float>(1, -2));
  EXPECT_EQ(delivered<std::complex<double>>("2.5"), std::complex<double>(2.5, 0));
}

TEST_F(ConvertTest, NumbersOutOfRangeAreRefused) {
  EXPECT_FAILS(refused<int8_t>("128"), FPT_ERR_DTYPE, "an integer too large for integer(int8)");
  EXPECT_FAILS(refused<int16_t>("-32769"), FPT_ERR_DTYPE, "integer(int16)");
  EXPECT_FAILS(refused<int32_t>("2**31"), FPT_ERR_DTYPE, "integer(int32)");
  EXPECT_FAILS(refused<int64_t>("2**63"), FPT_ERR_DTYPE, "too large for integer(int64)");
  EXPECT_FAILS(refused<int8_t>("-2**70"), FPT_ERR_DTYPE, "too large for integer(int8)");
  EXPECT_FAILS(refused<float>("10**39"), FPT_ERR_DTYPE, "too large for real(real32)");
  EXPECT_FAILS(refused<double>("10**400"), FPT_ERR_DTYPE, "too large");
  EXPECT_FAILS(refused<float>("1e39"), FPT_ERR_DTYPE, "too large for real(real32)");
  EXPECT_FAILS(refused<float>("-1e39"), FPT_ERR_DTYPE, "too large for real(real32)");
  EXPECT_FAILS(refused<std::complex<float>>("1e39j"), FPT_ERR_DTYPE, "too large for complex(real32)");
}

TEST_F(ConvertTest, InfinityAndNaNAreNumbers) {
  EXPECT_EQ(delivered<float>("float('-inf')"), -std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(delivered<double>("float('nan')")));
}

TEST_F(ConvertTest, NoPartOfANumberIsDropped) {
  EXPECT_FAILS(refused<int32_t>("1.0"), FPT_ERR_DTYPE, "is of type float, but the variable is integer(int32)");
  EXPECT_FAILS(refused<double>("1j"), FPT_ERR_DTYPE, "is of type complex");
  EXPECT_FAILS(refused<double>("True"), FPT_ERR_DTYPE, "is of type bool");
  EXPECT_FAILS(refused<int32_t>("True"), FPT_ERR_DTYPE, "is of type bool");
  EXPECT_FAILS(refused<double>("'1.0'"), FPT_ERR_DTYPE, "is a string, but the output is real(real64)");
}

TEST_F(ConvertTest, BoolsGoIntoLogicalsOfEveryKind) {
  EXPECT_TRUE(delivered<bool>("True"));
  int16_t two = 7;
  int32_t four = 7;
  int64_t eight = 7;
  ASSERT_OK(value("True", logical(two, FPT_LOGICAL16)));
  ASSERT_OK(value("False", logical(four, FPT_LOGICAL32)));
  ASSERT_OK(value("torch.tensor(True)", logical(eight, FPT_LOGICAL64)));
  EXPECT_EQ(two, 1);
  EXPECT_EQ(four, 0);
  EXPECT_EQ(eight, 1);
  EXPECT_FAILS(value("1", logical(four, FPT_LOGICAL32)), FPT_ERR_DTYPE, "is of type int");
  EXPECT_FAILS(value("torch.tensor(1)", logical(four, FPT_LOGICAL32)), FPT_ERR_DTYPE, "int64");
}

TEST_F(ConvertTest, TensorsWidenButDoNotNarrow) {
  EXPECT_EQ(delivered<double>("torch.tensor(0.5)"), 0.5);
  EXPECT_EQ(delivered<double>("torch.tensor(3, dtype=torch.int32)"), 3);
  EXPECT_EQ(delivered<int64_t>("torch.tensor(3, dtype=torch.int8)"), 3);
  EXPECT_EQ(delivered<std::complex<double>>("torch.tensor(0.5)"), 0.5);
  EXPECT_FAILS(refused<float>("torch.tensor(0.5, dtype=torch.float64)"), FPT_ERR_DTYPE, "only with cast=.true.");
  EXPECT_FAILS(refused<float>("torch.tensor(3, dtype=torch.int32)"), FPT_ERR_DTYPE, "lose precision");
  EXPECT_FAILS(refused<int32_t>("torch.tensor(0.5)"), FPT_ERR_DTYPE, "no conversion between these types");
  EXPECT_FAILS(refused<double>("torch.tensor(1j)"), FPT_ERR_DTYPE, "complex64");
}

TEST_F(ConvertTest, TensorsNarrowWhereTheModuleCasts) {
  const Script casts(source, {test::named("cast", in(int32_t{1}))});
  float single = 0;
  int8_t tiny = 0;
  ASSERT_OK(casts.call("value", {in("torch.tensor(0.1, dtype=torch.float64)")}, {out(single)}));
  EXPECT_EQ(single, 0.1f);
  ASSERT_OK(casts.call("value", {in("torch.tensor(5)")}, {out(tiny)}));
  EXPECT_EQ(tiny, 5);
  EXPECT_FAILS(casts.call("value", {in("torch.tensor(0.5)")}, {out(tiny)}), FPT_ERR_DTYPE, "no conversion");
}

TEST_F(ConvertTest, HalfPrecisionWidens) {
  for (const char* type : {"float16", "bfloat16"}) {
    std::vector<float> y(2);
    std::vector<double> z(2);
    const std::string expression = std::string("torch.tensor([0.5, -2.0], dtype=torch.") + type + ")";
    ASSERT_OK(value(expression, out(y)));
    ASSERT_OK(value(expression, out(z)));
    EXPECT_EQ(y, (std::vector<float>{0.5, -2}));
    EXPECT_EQ(z, (std::vector<double>{0.5, -2}));
    std::vector<int32_t> n(2, 7);
    EXPECT_FAILS(value(expression, out(n)), FPT_ERR_DTYPE, "no conversion");
  }
}

TEST_F(ConvertTest, LazyConjugationAndNegationAreCarriedOut) {
  using Z = std::complex<double>;
  const std::string z = "torch.tensor([1+2j, 3-4j], dtype=torch.complex128)";
  std::vector<Z> y(2);
  std::vector<double> imaginary(2);
  ASSERT_OK(value(z + ".conj()", out(y)));
  EXPECT_EQ(y, (std::vector<Z>{{1, -2}, {3, 4}}));
  ASSERT_OK(value(z + ".conj().imag", out(imaginary)));
  EXPECT_EQ(imaginary, (std::vector<double>{-2, 4}));
  ASSERT_OK(value("torch._neg_view(torch.tensor([1.0, 2.0], dtype=torch.float64))", out(imaginary)));
  EXPECT_EQ(imaginary, (std::vector<double>{-1, -2}));
}

TEST_F(ConvertTest, ResultsThatRequireAGradientAreDelivered) {
  std::vector<double> y(2);
  ASSERT_OK(value("2 * torch.ones(2, dtype=torch.float64, requires_grad=True)", out(y)));
  EXPECT_EQ(y, (std::vector<double>{2, 2}));
  ASSERT_OK(value("torch.nn.Parameter(torch.full((2,), 3.0, dtype=torch.float64))", out(y)));
  EXPECT_EQ(y, (std::vector<double>{3, 3}));
  EXPECT_EQ(delivered<double>("torch.ones((), requires_grad=True) * 4"), 4);
}

TEST_F(ConvertTest, InferenceTensorsAndSubclassesAreDelivered) {
  const Script script(R"(
import torch
class Special(torch.Tensor): pass
@torch.inference_mode()
def inference(): return torch.ones(2, dtype=torch.float64)
def special(): return torch.full((2,), 5.0, dtype=torch.float64).as_subclass(Special)
)");
  std::vector<double> y(2);
  ASSERT_OK(script.call("inference", {}, {out(y)}));
  EXPECT_EQ(y, (std::vector<double>{1, 1}));
  ASSERT_OK(script.call("special", {}, {out(y)}));
  EXPECT_EQ(y, (std::vector<double>{5, 5}));
}

TEST_F(ConvertTest, TypesWithoutCounterpartAreRefused) {
  std::vector<double> y(2, 7);
  for (const char* type : {"uint16", "uint32", "uint64", "float8_e4m3fn"}) {
    const test::Outcome outcome = value(std::string("torch.zeros(2).to(torch.") + type + ")", out(y));
    EXPECT_TRUE(outcome.status == FPT_ERR_DTYPE || outcome.status == FPT_ERR_RESULT_TYPE)
        << type << ": " << status_name(outcome.status) << " " << outcome.text;
  }
  EXPECT_FAILS(value("torch.zeros((1,) * 8, dtype=torch.float64)", out(y)), FPT_ERR_RANK, "8 axes");
  EXPECT_EQ(y, (std::vector<double>{7, 7}));
}

TEST_F(ConvertTest, TextFillsACharacterVariableWithBlanks) {
  std::string text = "xxxxxxxx";
  ASSERT_OK(value("'warm'", out(text)));
  EXPECT_EQ(text, "warm    ");
  ASSERT_OK(value("''", out(text)));
  EXPECT_EQ(text, "        ");
  ASSERT_OK(
      value("'gr\xC3\xBC\xC3\x9F"
            "e'",
            out(text)));
  EXPECT_EQ(text,
            "gr\xC3\xBC\xC3\x9F"
            "e ");
}

TEST_F(ConvertTest, TextThatIsTooLongIsNotCut) {
  std::string text = "xxx";
  EXPECT_FAILS(value("'warm'", out(text)), FPT_ERR_SHAPE, "a string of 4 bytes, but the variable has room for 3");
  EXPECT_EQ(text, "xxx");
}

TEST_F(ConvertTest, OnlyTextGoesIntoACharacterVariable) {
  std::string text = "xxx";
  EXPECT_FAILS(value("1", out(text)), FPT_ERR_DTYPE, "is of type int, but the output is a character variable");
  EXPECT_FAILS(value("torch.zeros(2)", out(text)), FPT_ERR_DTYPE, "character variable");
  EXPECT_EQ(text, "xxx");
}

}  // namespace
}  // namespace fpt
