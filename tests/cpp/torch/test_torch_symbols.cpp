// SPDX-License-Identifier: MIT
/// What the functions of torch's libraries say is what Python says.
#include "base/switches.hpp"
#include "python/interpreter.hpp"
#include "script.hpp"
#include "torch/framework.hpp"
#include "torch/torch_access.hpp"
#include "torch/torch_symbols.hpp"

namespace fpt {
namespace {

using torch_access::TorchSymbols;

struct Symbols : testing::Test {
  test::Script script{"import torch"};
  InterpreterLock lock;  // after the script: released before it goes
  TorchSymbols symbols;
  double values[6] = {1, 2, 3, 4, 5, 6};
  Array array = array_of(test::array_arg(values, {2, 3}, FPT_IN, {24, 8}));

  void SetUp() override {
    ASSERT_NE(torch_report(), "torch is not imported");  // finds the ways that make tensors
    symbols = TorchSymbols::find();
  }

  Ref evaluate(const std::string& expression, PyObject* x = Py_None) {
    const Ref torch(PyImport_ImportModule("torch")), names(PyDict_New());
    PyDict_SetItemString(names.get(), "torch", torch.get());
    PyDict_SetItemString(names.get(), "x", x);
    return checked(PyRun_String(expression.c_str(), Py_eval_input, names.get(), names.get()), expression);
  }
  bool is_true(const char* expression, PyObject* x = Py_None) { return evaluate(expression, x).get() == Py_True; }
};

TEST_F(Symbols, AreLeftOutOneByOne) {
  const bool wants_functions = !is_switched_off("FTN_PYTORCH_CPP_FUNCTIONS");
  EXPECT_EQ(symbols.has_shim(), !is_switched_off("FTN_PYTORCH_SHIM"));
  EXPECT_EQ(symbols.tells_autograd(), wants_functions);
  EXPECT_EQ(symbols.tells_version(), wants_functions);
  EXPECT_EQ(symbols.tells_negative(), wants_functions);
  EXPECT_EQ(symbols.tells_inference_mode(), wants_functions);
  EXPECT_EQ(symbols.count_of_cpp_functions(), wants_functions ? 4 : 0);
  const TorchSymbols none;
  EXPECT_FALSE(none.has_shim());
  EXPECT_EQ(none.count_of_cpp_functions(), 0);
}

TEST_F(Symbols, TheShimSeesDataTypeShapeAndStrides) {
  if (!symbols.has_shim()) GTEST_SKIP() << "the shim is switched off";
  const auto shows = [&](const char* expression, const Array& expected) {
    const ArrayObject made = make_array(Framework::torch, array, nullptr, false);
    return symbols.shows(evaluate(expression, made.object.get()).get(), expected);
  };
  EXPECT_TRUE(shows("x", array));
  EXPECT_TRUE(shows("x.view(2, 3)", array));
  EXPECT_TRUE(shows("x.t()", reversed(array)));
  for (const char* expression :
       {"x.t()", "x[:, :2]", "x[1:]", "x.unsqueeze(0)", "x.clone()", "x.view(torch.int64)", "x.sum()"})
    EXPECT_FALSE(shows(expression, array)) << expression;
}

TEST_F(Symbols, TheShimKnowsEveryElementType) {
  if (!symbols.has_shim()) GTEST_SKIP() << "the shim is switched off";
  for (int32_t dtype = FPT_BOOL; dtype <= FPT_COMPLEX128; ++dtype) {
    const Ref tensor = evaluate(std::string("torch.zeros(2, 3, dtype=torch.") + dtype_name(dtype) + ")");
    const View view = view_of(tensor.get());
    EXPECT_TRUE(symbols.shows(tensor.get(), view.array)) << dtype_name(dtype);
    Array other = view.array;
    other.dtype = dtype == FPT_BOOL ? FPT_INT8 : FPT_BOOL;
    EXPECT_FALSE(symbols.shows(tensor.get(), other)) << dtype_name(dtype);
  }
}

TEST_F(Symbols, WhatAutogradHasAttachedIsTold) {
  if (!symbols.tells_autograd()) GTEST_SKIP() << "the C++ functions are switched off";
  for (const char* expression : {"torch.ones(2)", "(torch.ones(2, requires_grad=True) * 2).detach()",
                                 "torch.nn.Parameter(torch.ones(2), requires_grad=False)",
                                 "torch.ones(2).requires_grad_(False)", "[x := torch.ones(2), x.add_(1), x.sum()][0]",
                                 "[x := torch.ones(2), x * torch.ones(2, requires_grad=True)][0]"})
    EXPECT_FALSE(symbols.has_autograd(evaluate(expression).get())) << expression;
  for (const char* expression :
       {"torch.ones(2, requires_grad=True)", "torch.ones(2, requires_grad=True) * 2",
        "torch.nn.Parameter(torch.ones(2))", "torch.ones(2).requires_grad_().requires_grad_(False)",
        "[x := torch.ones(2), setattr(x, 'grad', torch.ones(2))][0]"})
    EXPECT_TRUE(symbols.has_autograd(evaluate(expression).get())) << expression;
}

TEST_F(Symbols, VersionsAreToldAsInPython) {
  if (!symbols.tells_version()) GTEST_SKIP() << "the C++ functions are switched off";
  for (const char* expression :
       {"torch.ones(2)", "torch.ones(2).add_(1)", "torch.ones(2).add_(1).mul_(2)", "torch.ones(2).t_()",
        "[x := torch.ones(2), x[0].add_(1)][0]", "[x := torch.ones(2), x.numpy().fill(1)][0]",
        "[x := torch.ones(2), x.data.add_(1)][0]"}) {
    const Ref tensor = evaluate(expression);
    const Ref version(PyObject_GetAttrString(tensor.get(), "_version"));
    EXPECT_EQ(symbols.version(tensor.get()), PyLong_AsLongLong(version.get())) << expression;
  }
  const Ref inside = evaluate("torch._C._InferenceMode(True)");
  EXPECT_EQ(symbols.version(evaluate("torch.ones(2).add_(1)").get()), 0) << "not counted";
}

TEST_F(Symbols, TheNegativeBitIsToldAsInPython) {
  if (!symbols.tells_negative()) GTEST_SKIP() << "the C++ functions are switched off";
  for (const char* expression :
       {"torch.ones(2)", "-torch.ones(2)", "torch._neg_view(torch.ones(2))",
        "torch._neg_view(torch._neg_view(torch.ones(2)))", "torch.ones(2, dtype=torch.complex64).conj().imag"}) {
    const Ref tensor = evaluate(expression);
    EXPECT_EQ(symbols.is_negative(tensor.get()), is_true("x.is_neg()", tensor.get())) << expression;
  }
}

TEST_F(Symbols, InferenceModeIsToldAsInPython) {
  if (!symbols.tells_inference_mode()) GTEST_SKIP() << "the C++ functions are switched off";
  EXPECT_FALSE(symbols.is_inference_mode());
  {
    const Ref inside = evaluate("torch._C._InferenceMode(True)");
    EXPECT_TRUE(is_true("torch.is_inference_mode_enabled()"));
    EXPECT_TRUE(symbols.is_inference_mode());
    EXPECT_EQ(TorchSymbols::find().tells_inference_mode(), true);  // the self-test starts from any mode
  }
  EXPECT_FALSE(symbols.is_inference_mode());
}

}  // namespace
}  // namespace fpt
