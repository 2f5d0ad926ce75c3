// SPDX-License-Identifier: MIT
/// What the extension says of tensors and of modes is what Python says.
#include "arrays/dtype.hpp"
#include "base/tensor_looks.hpp"
#include "python/interpreter.hpp"
#include "script.hpp"
#include "torch/framework.hpp"

namespace fpt {
namespace {

struct Looks : testing::Test {
  test::Script script{"import torch"};
  InterpreterLock lock;  // after the script: released before it goes
  const TensorLooks* looks = nullptr;

  void SetUp() override {
    const Ref capsule = checked(PyObject_CallNoArgs(embed("tensor_looks")), "looks");
    if (capsule.get() == Py_None) GTEST_SKIP() << "built without the extension";
    looks = static_cast<const TensorLooks*>(PyCapsule_GetPointer(capsule.get(), tensor_looks_capsule));
    ASSERT_NE(looks, nullptr);
  }

  Ref evaluate(const std::string& expression, PyObject* x = Py_None) {
    const Ref torch(PyImport_ImportModule("torch")), names(PyDict_New());
    PyDict_SetItemString(names.get(), "torch", torch.get());
    PyDict_SetItemString(names.get(), "x", x);
    return checked(PyRun_String(expression.c_str(), Py_eval_input, names.get(), names.get()), expression);
  }
  bool is_true(const char* expression, PyObject* x = Py_None) { return evaluate(expression, x).get() == Py_True; }
  TensorLook look(const Ref& tensor) {
    TensorLook found{};
    EXPECT_TRUE(looks->look(tensor.get(), found));
    return found;
  }
};

TEST_F(Looks, SeeDataTypeShapeAndStrides) {
  for (const char* expression : {"torch.ones(2, 3)", "torch.ones(2, 3).t()", "torch.ones(4, 6)[1:, ::2]",
                                 "torch.ones(3, dtype=torch.complex64)", "torch.tensor(1.0)"}) {
    const Ref tensor = evaluate(expression);
    const TensorLook found = look(tensor);
    const Array seen = view_of(tensor.get()).array;
    EXPECT_EQ(found.data, seen.data) << expression;
    EXPECT_EQ(found.type, dtype_facts(seen.dtype).torch_scalar_type) << expression;
    ASSERT_EQ(found.rank, seen.rank) << expression;
    for (int32_t i = 0; i < seen.rank; ++i) {
      EXPECT_EQ(found.sizes[i], seen.extents[i]) << expression;
      EXPECT_EQ(found.strides[i] * static_cast<int64_t>(dtype_size(seen.dtype)), seen.strides[i]) << expression;
    }
  }
}

TEST_F(Looks, KnowEveryElementType) {
  for (int32_t dtype = FPT_BOOL; dtype <= FPT_COMPLEX128; ++dtype)
    EXPECT_EQ(look(evaluate(concat("torch.zeros(2, dtype=torch.", dtype_name(dtype), ")"))).type,
              dtype_facts(dtype).torch_scalar_type);
}

TEST_F(Looks, TellWhatAutogradHasAttached) {
  for (const char* expression : {"torch.ones(2)", "(torch.ones(2, requires_grad=True) * 2).detach()",
                                 "torch.nn.Parameter(torch.ones(2), requires_grad=False)",
                                 "torch.ones(2).requires_grad_(False)", "[x := torch.ones(2), x.add_(1), x.sum()][0]",
                                 "[x := torch.ones(2), x * torch.ones(2, requires_grad=True)][0]"})
    EXPECT_FALSE(look(evaluate(expression)).has_autograd) << expression;
  for (const char* expression :
       {"torch.ones(2, requires_grad=True)", "torch.ones(2, requires_grad=True) * 2",
        "torch.nn.Parameter(torch.ones(2))", "torch.ones(2).requires_grad_().requires_grad_(False)",
        "[x := torch.ones(2), setattr(x, 'grad', torch.ones(2))][0]"})
    EXPECT_TRUE(look(evaluate(expression)).has_autograd) << expression;
}

TEST_F(Looks, TellVersionsAsPythonDoes) {
  for (const char* expression :
       {"torch.ones(2)", "torch.ones(2).add_(1)", "torch.ones(2).add_(1).mul_(2)", "torch.ones(2).t_()",
        "[x := torch.ones(2), x[0].add_(1)][0]", "[x := torch.ones(2), x.numpy().fill(1)][0]",
        "[x := torch.ones(2), x.data.add_(1)][0]"}) {
    const Ref tensor = evaluate(expression);
    const Ref version(PyObject_GetAttrString(tensor.get(), "_version"));
    EXPECT_EQ(looks->version(tensor.get()), PyLong_AsLongLong(version.get())) << expression;
  }
  const Ref inside = evaluate("torch._C._InferenceMode(True)");
  EXPECT_EQ(looks->version(evaluate("torch.ones(2).add_(1)").get()), 0) << "not counted";
}

TEST_F(Looks, TellTheNegativeBitAsPythonDoes) {
  for (const char* expression :
       {"torch.ones(2)", "-torch.ones(2)", "torch._neg_view(torch.ones(2))",
        "torch._neg_view(torch._neg_view(torch.ones(2)))", "torch.ones(2, dtype=torch.complex64).conj().imag"}) {
    const Ref tensor = evaluate(expression);
    EXPECT_EQ(looks->is_negative(tensor.get()), is_true("x.is_neg()", tensor.get())) << expression;
  }
}

TEST_F(Looks, TellModesAsPythonDoes) {
  EXPECT_TRUE(looks->modes().is_plain() && looks->modes().gradients);
  {
    const Ref inside = evaluate("torch._C._InferenceMode(True)");
    EXPECT_TRUE(looks->is_inference_mode() && looks->modes().inference && !looks->modes().gradients);
  }
  EXPECT_FALSE(looks->is_inference_mode());
  for (const auto& [on, off, member] :
       {std::tuple("torch.set_autocast_enabled('cpu', True)", "torch.set_autocast_enabled('cpu', False)",
                   &TorchModes::autocast_host),
        std::tuple("torch.use_deterministic_algorithms(True)", "torch.use_deterministic_algorithms(False)",
                   &TorchModes::deterministic)}) {
    evaluate(on);
    EXPECT_TRUE(looks->modes().*member) << on;
    evaluate(off);
    EXPECT_TRUE(looks->modes().is_plain()) << off;
  }
  evaluate("torch.set_default_dtype(torch.float64)");
  EXPECT_EQ(looks->modes().default_type, dtype_facts(FPT_FLOAT64).torch_scalar_type);
  evaluate("torch.set_default_dtype(torch.float32)");
  const Ref device = evaluate("torch.device('cpu')");
  checked(PyObject_CallMethod(device.get(), "__enter__", nullptr), "a default device");
  EXPECT_EQ(looks->modes().functions, 1);
  checked(PyObject_CallMethod(device.get(), "__exit__", "OOO", Py_None, Py_None, Py_None), "a default device");
  EXPECT_TRUE(looks->modes().is_plain());
}

}  // namespace
}  // namespace fpt
