// SPDX-License-Identifier: MIT
/// Which ways into torch are used, and that all of them see the same. The whole of test_embed also runs without the
/// extension.
#include <cstring>

#include "python/interpreter.hpp"
#include "script.hpp"
#include "torch/framework.hpp"
#include "torch/torch_access.hpp"

namespace fpt {
namespace {

struct TorchAccess : testing::Test {
  test::Script script{"import torch"};
  InterpreterLock lock;  // after the script: released before it goes
  double values[6] = {1, 2, 3, 4, 5, 6};
  Array array = array_of(test::array_arg(values, {2, 3}, FPT_IN, {24, 8}));

  Ref evaluate(const char* expression) {
    const Ref torch(PyImport_ImportModule("torch")), names(PyDict_New());
    PyDict_SetItemString(names.get(), "torch", torch.get());
    return checked(PyRun_String(expression, Py_eval_input, names.get(), names.get()), expression);
  }
};

TEST_F(TorchAccess, SaysWhichWaysAreUsed) {
  const std::string report = torch_report();
  EXPECT_TRUE(test::contains(report, "exchange API")) << report;
  EXPECT_EQ(test::contains(report, "functions of the extension"), torch_access::tells_version_at_once()) << report;
}

TEST_F(TorchAccess, AnArrayThatTorchRefusesLeavesNothingBehind) {
  Array strange = array;
  strange.device = {77, 0};  // no kind of device that torch knows
  const auto owner = std::make_shared<int>();
  for (int i = 0; i < 3; ++i)
    EXPECT_FAILS(test::outcome_of([&] { torch_access::import_slot(dlpack::take_slot(strange, owner)); }),
                 FPT_ERR_PYTHON, "torch refused an array");
  EXPECT_EQ(owner.use_count(), 1);
}

TEST_F(TorchAccess, MadeTensorIsUnchangedUntilSomethingIs) {
  ArrayObject made = make_array(Framework::torch, array, nullptr, false);
  EXPECT_TRUE(torch_access::is_unchanged(made.object.get(), array));
  Array other = array;
  other.data = values + 1;
  EXPECT_FALSE(torch_access::is_unchanged(made.object.get(), other));
  other = array;
  other.extents[1] = 2;
  EXPECT_FALSE(torch_access::is_unchanged(made.object.get(), other));
  other = array;
  other.strides[0] = 16;
  EXPECT_FALSE(torch_access::is_unchanged(made.object.get(), other));
  other = array;
  other.rank = 1;
  EXPECT_FALSE(torch_access::is_unchanged(made.object.get(), other));
}

TEST_F(TorchAccess, AGradientIsAChange) {
  for (const char* attribute : {"requires_grad", "grad"}) {
    ArrayObject made = make_array(Framework::torch, array, nullptr, false);
    EXPECT_TRUE(torch_access::is_unchanged(made.object.get(), array));
    const Ref value = evaluate(attribute == std::string("grad") ? "torch.ones(2, 3, dtype=torch.float64)" : "True");
    ASSERT_EQ(PyObject_SetAttrString(made.object.get(), attribute, value.get()), 0);
    EXPECT_FALSE(torch_access::is_unchanged(made.object.get(), array)) << attribute;
  }
}

TEST_F(TorchAccess, AnotherImplementationIsAChange) {
  ArrayObject made = make_array(Framework::torch, array, nullptr, false);
  ArrayObject other = make_array(Framework::torch, reversed(array), nullptr, false);
  ASSERT_TRUE(torch_access::is_unchanged(made.object.get(), array));
  const Ref utils = checked(PyImport_ImportModule("torch.utils"), "torch.utils");
  checked(PyObject_CallMethod(utils.get(), "swap_tensors", "OO", made.object.get(), other.object.get()),
          "swap_tensors");
  EXPECT_FALSE(torch_access::is_unchanged(made.object.get(), array));
  EXPECT_TRUE(torch_access::is_unchanged(made.object.get(), reversed(array)));
}

TEST_F(TorchAccess, AnotherElementTypeIsAChange) {
  ArrayObject made = make_array(Framework::torch, array, nullptr, false);
  ASSERT_TRUE(torch_access::is_unchanged(made.object.get(), array));
  const Ref torch = checked(PyImport_ImportModule("torch"), "torch");
  const bool wide = dtype_size(array.dtype) == 8;
  const Ref type = checked(PyObject_GetAttrString(torch.get(), wide ? "int64" : "int32"), "type");
  const Ref view = checked(PyObject_CallMethod(made.object.get(), "view", "O", type.get()), "view");
  ASSERT_EQ(PyObject_SetAttrString(made.object.get(), "data", view.get()), 0);
  EXPECT_FALSE(torch_access::is_unchanged(made.object.get(), array));
}

TEST_F(TorchAccess, RetentionIsSeenThroughTheSlot) {
  ArrayObject made = make_array(Framework::torch, array, nullptr, false);
  Ref view(PyObject_CallMethod(made.object.get(), "t", nullptr));
  made.object = Ref();
  EXPECT_TRUE(is_retained(made));
  view = Ref();
  EXPECT_FALSE(is_retained(made));
}

TEST_F(TorchAccess, ASlotThatCarriesAnotherArrayIsNotRetention) {
  ArrayObject made = make_array(Framework::torch, array, nullptr, false);
  made.object = Ref();
  const ArrayObject next = make_array(Framework::torch, array, nullptr, false);
  EXPECT_EQ(next.slot, made.slot);
  EXPECT_FALSE(is_retained(made));
  EXPECT_TRUE(is_retained(next));
}

TEST_F(TorchAccess, MemoryThatATensorOwnsLivesAsLongAsIt) {
  Storage storage = allocate(sizeof values);
  std::memcpy(storage.get(), values, sizeof values);
  Array owned = array;
  owned.data = storage.get();
  const ArrayObject made = make_array(Framework::torch, owned, std::move(storage), false);
  const Ref sum(PyObject_CallMethod(made.object.get(), "sum", nullptr));
  EXPECT_EQ(PyFloat_AsDouble(Ref(PyNumber_Float(sum.get())).get()), 21);
}

TEST_F(TorchAccess, PlainTensorsAreViewedDirectly) {
  View view;
  EXPECT_TRUE(view_plain_tensor(evaluate("torch.ones(2, 3)").get(), view));
  for (const char* expression : {"torch.ones(2, dtype=torch.complex64).conj()", "torch._neg_view(torch.ones(2))",
                                 "torch.ones(2, device='meta')", "torch.ones(2).to_sparse()", "1.5", "None", "[1]"})
    EXPECT_FALSE(view_plain_tensor(evaluate(expression).get(), view)) << expression;
  EXPECT_FALSE(PyErr_Occurred());
}

TEST_F(TorchAccess, AViewHasShapeStridesAndType) {
  const Ref tensor = evaluate("torch.arange(24, dtype=torch.int16).reshape(2, 3, 4)[:, 1:, ::2]");
  const View view = view_of(tensor.get());
  EXPECT_EQ(shape_text(view.array), "(2, 2, 2)");
  EXPECT_EQ(view.array.dtype, FPT_INT16);
  EXPECT_EQ(view.array.strides[0], 24);
  EXPECT_EQ(view.array.strides[1], 8);
  EXPECT_EQ(view.array.strides[2], 4);
  EXPECT_EQ(*static_cast<int16_t*>(view.array.data), 4);
}

TEST_F(TorchAccess, AViewKeepsTheMemory) {
  View view = view_of(evaluate("torch.full((1000,), 7.0)").get());
  const Ref others = evaluate("[torch.zeros(1000) for _ in range(20)]");
  EXPECT_EQ(static_cast<float*>(view.array.data)[999], 7);
}

}  // namespace
}  // namespace fpt
