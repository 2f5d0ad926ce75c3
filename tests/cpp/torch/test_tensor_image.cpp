// SPDX-License-Identifier: MIT
/// What a script may do to a tensor must show in its image, and what leaves it alone must not.
#include "torch/tensor_image.hpp"

#include <cstring>

#include "torch/framework.hpp"
#include "python/interpreter.hpp"
#include "script.hpp"
#include "torch/torch_access.hpp"

namespace fpt {
namespace {

struct TensorImages : testing::Test {
  test::Script script{"import torch"};
  InterpreterLock lock;  // after the script: released before it goes
  double values[6] = {1, 2, 3, 4, 5, 6};
  Array array = array_of(test::array_arg(values, {2, 3}, FPT_IN, {24, 8}));

  /// A tensor x on `array` with its image, and whether the image still matches after `statements` have run on x.
  bool matches_after(const char* statements) {
    const Made made = make_array(Framework::torch, array, nullptr, false);
    TensorImage image;
    image.take(made.object.get(), array.rank);
    EXPECT_TRUE(image.matches(made.object.get()));
    const Ref torch(PyImport_ImportModule("torch")), utils(PyImport_ImportModule("torch.utils")), names(PyDict_New());
    PyDict_SetItemString(names.get(), "torch", torch.get());
    PyDict_SetItemString(names.get(), "x", made.object.get());
    checked(PyRun_String(statements, Py_file_input, names.get(), names.get()), statements);
    return image.matches(made.object.get());
  }

  void SetUp() override {
    using torch_access::is_switched_off;
    const bool wanted = !is_switched_off("FTN_PYTORCH_IMAGES") && !is_switched_off("FTN_PYTORCH_EXCHANGE_API");
    make_array(Framework::torch, array, nullptr, false);  // torch is looked into when it is first needed
    ASSERT_EQ(test::contains(torch_report(), "images, moves"), wanted) << torch_report();
    if (!wanted) GTEST_SKIP() << "images are switched off";
  }
};

TEST_F(TensorImages, UseLeavesThemAlone) {
  for (const char* statements : {"x + 1", "x.sum().item()", "x.t()", "x[0, 1]", "x.numpy()", "x.shape, x.stride()", "x.clone()",
                                 "x.mul_(1)", "x[0] = 5.0", "torch.nn.Linear(3, 1).double()(x).sum().backward()",
                                 "y = x.view(-1)\ndel y", "x.add_(1, alpha=2)", "torch.from_numpy(x.numpy())"})
    EXPECT_TRUE(matches_after(statements)) << statements;
}

TEST_F(TensorImages, ChangesShow) {
  for (const char* statements :
       {"x.t_()", "x.unsqueeze_(0)", "x.resize_(2, 1)", "x.as_strided_((2, 2), (1, 1))", "x.set_(torch.ones(3, 2).double())",
        "x.data = torch.ones(3, 2).double()", "x.data = x.view(torch.int64)", "x.requires_grad_()", "x.share_memory_()",
        "torch.utils.swap_tensors(x, torch.ones(3, 2).double())", "x.requires_grad_()\nx.requires_grad_(False)",
        "x.untyped_storage().share_memory_()", "x.swapaxes_(0, 1)", "x.squeeze_().transpose_(0, 1)"})
    EXPECT_FALSE(matches_after(statements)) << statements;
}

TEST_F(TensorImages, NothingMatchesAnEmptyOne) {
  const Made made = make_array(Framework::torch, array, nullptr, false);
  EXPECT_FALSE(TensorImage().matches(made.object.get()));
}

TEST_F(TensorImages, OfAnotherTensorDoesNotMatch) {
  const Made one = make_array(Framework::torch, array, nullptr, false), two = make_array(Framework::torch, array, nullptr, false);
  TensorImage image;
  image.take(one.object.get(), array.rank);
  EXPECT_FALSE(image.matches(two.object.get()));
}

TEST_F(TensorImages, OfSharedTensorsSaySo) {
  const Made made = make_array(Framework::torch, array, nullptr, false);
  PyObject* tensor = made.object.get();
  TensorImage image;
  image.take(tensor, array.rank);
  EXPECT_TRUE(image.is_unshared(tensor));
  const auto is_shared_by = [&](Ref holder) { return holder && image.matches(tensor) && !image.is_unshared(tensor); };
  EXPECT_TRUE(is_shared_by(Ref(PyObject_CallMethod(tensor, "detach", nullptr))));
  EXPECT_TRUE(is_shared_by(Ref(PyObject_CallMethod(tensor, "t", nullptr))));
  EXPECT_TRUE(is_shared_by(Ref(PyWeakref_NewRef(tensor, nullptr))));
  EXPECT_TRUE(image.is_unshared(tensor)) << "all of them have gone";
  EXPECT_TRUE(is_shared_by(Ref(PyObject_CallMethod(tensor, "untyped_storage", nullptr))));
}

TEST_F(TensorImages, MoveFromWhereTheyWereTakenOnly) {
  double elsewhere[6] = {7, 8, 9, 10, 11, 12};
  const Made made = make_array(Framework::torch, array, nullptr, false);
  TensorImage image;
  image.take(made.object.get(), array.rank);
  EXPECT_FALSE(image.move(elsewhere, values)) << "it was made of other memory";
  EXPECT_EQ(view_of(made.object.get()).array.data, values);
  ASSERT_TRUE(image.move(values, elsewhere));
  EXPECT_TRUE(image.matches(made.object.get()));
  EXPECT_EQ(view_of(made.object.get()).array.data, elsewhere);
  ASSERT_TRUE(image.move(elsewhere, values));
  EXPECT_EQ(view_of(made.object.get()).array.data, values);
}

TEST_F(TensorImages, ThereAreNoneOfManyAxes) {
  Array many = array_of(test::array_arg(values, {1, 1, 1, 1, 1, 1}, FPT_IN));
  const Made made = make_array(Framework::torch, many, nullptr, false);
  TensorImage image;
  image.take(made.object.get(), many.rank);
  EXPECT_FALSE(image.matches(made.object.get()));
}

}  // namespace
}  // namespace fpt
