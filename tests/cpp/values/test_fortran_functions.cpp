// SPDX-License-Identifier: MIT
/// Functions of torch with the axes, shapes and order of elements of Fortran, and assignment: the same in both layouts.
/// Part of test_embed, where Python computes, and of test_direct_core, where libtorch does.
#include <cmath>

#include "script.hpp"

namespace fpt {
namespace {

using test::in;
using test::out;
using test::outcome;

using Doubles = std::vector<double>;
using Numbers = std::vector<int64_t>;

class FortranFunctions : public testing::TestWithParam<int32_t> {
 protected:
  int32_t layout() const { return GetParam(); }

  /// A tensor on values, first axis first.
  fpt_tensor tensor(const Doubles& values, const Numbers& extents) { return tensor_of(values, FPT_FLOAT64, extents); }
  template <class Type>
  fpt_tensor tensor_of(const std::vector<Type>& values, int32_t dtype, const Numbers& extents) {
    memory_.emplace_back(reinterpret_cast<const char*>(values.data()),
                         reinterpret_cast<const char*>(values.data() + values.size()));
    Array array;
    array.data = memory_.back().data();
    array.dtype = dtype;
    array.rank = static_cast<int32_t>(extents.size());
    std::copy(extents.begin(), extents.end(), array.extents);
    set_contiguous(array);
    fpt_arg arg = argument_of(array);
    EXPECT_EQ(fpt_tensor_from(&made(), &arg, layout()), FPT_OK);
    return made_.back();
  }
  /// Without memory of the program.
  fpt_tensor computed(const Doubles& values, const Numbers& extents) {
    return result("Tensor.clone", {of(tensor(values, extents))});
  }

  static fpt_arg of(fpt_tensor tensor) {
    fpt_arg arg;
    fpt_tensor_arg(tensor, &arg);
    return arg;
  }
  test::Outcome call(const std::string& name, std::vector<fpt_arg> inputs, fpt_tensor* result = nullptr) {
    return outcome(fpt_torch_call(name.data(), static_cast<int64_t>(name.size()), inputs.data(),
                                  static_cast<int32_t>(inputs.size()), nullptr, 0, nullptr, result, layout()));
  }
  fpt_tensor result(const std::string& name, std::vector<fpt_arg> inputs) {
    EXPECT_OK(call(name, std::move(inputs), &made())) << name;
    return made_.back();
  }
  /// Extents of Fortran.
  static Numbers shape(fpt_tensor tensor) {
    int32_t dtype = 0, rank = 0;
    int64_t extents[FPT_MAX_RANK];
    char device[32];
    EXPECT_EQ(fpt_tensor_info(tensor, &dtype, &rank, extents, device), FPT_OK);
    return {extents, extents + rank};
  }
  /// In the order of Fortran.
  Doubles values(fpt_tensor tensor) {
    int64_t count = 1;
    for (const int64_t extent : shape(tensor)) count *= extent;
    Numbers whole{count};
    Doubles found(static_cast<std::size_t>(count));
    const fpt_tensor flat = result("fortran.reshape", {of(tensor), in(whole)});
    fpt_arg target = out(found);
    EXPECT_OK(outcome(fpt_tensor_copy(flat, &target, 1)));
    return found;
  }
  bool has_graph(fpt_tensor tensor) {
    bool wanted = false;
    std::vector<fpt_arg> inputs{of(tensor)}, outputs{out(wanted)};
    const std::string name = "Tensor.requires_grad.__get__";
    EXPECT_OK(outcome(fpt_torch_call(name.data(), static_cast<int64_t>(name.size()), inputs.data(), 1, outputs.data(),
                                     1, nullptr, nullptr, layout())));
    return wanted;
  }
  static test::Outcome let(int32_t what, fpt_tensor target, fpt_tensor first, fpt_tensor second = 0, int32_t how = 1) {
    return outcome(fpt_tensor_let(what, target, first, second, how));
  }
  void want_gradients(fpt_tensor tensor) { EXPECT_OK(call("fortran.set_requires_grad", {of(tensor), in(true)})); }
  fpt_tensor gradient_of(fpt_tensor tensor) {
    EXPECT_EQ(fpt_tensor_gradient(tensor, &made()), FPT_OK);
    return made_.back();
  }
  Doubles gradient(fpt_tensor tensor) { return values(gradient_of(tensor)); }
  void go_back(fpt_tensor tensor) {
    const fpt_tensor sum = result("fortran.reduce.sum", {of(tensor), in(false)});
    EXPECT_OK(outcome(fpt_tensor_backward(sum, nullptr, 0)));
  }

  ~FortranFunctions() override {
    for (const fpt_tensor each : made_) fpt_tensor_free(each);
  }

  /// [[3, -4, 5], [1, 1.5, -9]] by columns
  const Doubles numbers = {3, 1, -4, 1.5, 5, -9};
  const Numbers extents = {2, 3};
  fpt_tensor a() { return tensor(numbers, extents); }

 private:
  fpt_tensor& made() {
    made_.push_back(0);
    return made_.back();
  }

  std::vector<fpt_tensor> made_;
  std::vector<std::vector<char>> memory_;
};

INSTANTIATE_TEST_SUITE_P(Layouts, FortranFunctions, testing::Values(0, 1));

TEST_P(FortranFunctions, ReduceAxesFrom1) {
  EXPECT_EQ(values(result("fortran.reduce.sum", {of(a()), in(false), in(1)})), (Doubles{4, -2.5, -4}));
  const fpt_tensor kept = result("fortran.reduce.sum", {of(a()), in(true), in(2)});
  EXPECT_EQ(shape(kept), (Numbers{2, 1}));
  EXPECT_EQ(values(kept), (Doubles{4, -6.5}));
  EXPECT_EQ(values(result("fortran.reduce.max", {of(a()), in(false), in(2)})), (Doubles{5, 1.5}));
  EXPECT_EQ(values(result("fortran.reduce.linalg.vector_norm", {of(tensor({3, 4}, {2})), in(false), in(1)})),
            (Doubles{5}));
}

TEST_P(FortranFunctions, ReduceEverything) {
  EXPECT_EQ(values(result("fortran.reduce.sum", {of(a()), in(false)})), (Doubles{-2.5}));
  EXPECT_EQ(shape(result("fortran.reduce.sum", {of(a()), in(true)})), (Numbers{1, 1}));
  EXPECT_DOUBLE_EQ(values(result("fortran.reduce.logsumexp", {of(tensor({0, 0}, {1, 2})), in(false)}))[0], std::log(2));
}

TEST_P(FortranFunctions, CountPlacesFrom1InTheOrderOfFortran) {
  EXPECT_EQ(values(result("fortran.place.argmax", {of(a())})), (Doubles{5}));
  EXPECT_EQ(values(result("fortran.place.argmin", {of(a())})), (Doubles{6}));
  EXPECT_EQ(values(result("fortran.place.argmax", {of(a()), in(1)})), (Doubles{1, 2, 1}));
  EXPECT_EQ(values(result("fortran.place.argmin", {of(a()), in(2)})), (Doubles{2, 3}));
}

TEST_P(FortranFunctions, WorkAlongAnAxis) {
  EXPECT_EQ(values(result("fortran.along.cumsum", {of(a()), in(2)})), (Doubles{3, 1, -1, 2.5, 4, -6.5}));
  EXPECT_EQ(values(result("fortran.along.flip", {of(a()), in(1)})), (Doubles{1, 3, 1.5, -4, -9, 5}));
  EXPECT_EQ(values(result("fortran.along.sort", {of(a()), in(1)})), (Doubles{1, 3, -4, 1.5, -9, 5}));
}

TEST_P(FortranFunctions, TakeTensorsApartAndJoinThem) {
  Numbers open{3, -1}, order{2, 1};
  const fpt_tensor other = result("fortran.reshape", {of(a()), in(open)});
  EXPECT_EQ(shape(other), (Numbers{3, 2}));
  EXPECT_EQ(values(other), numbers);
  const fpt_tensor turned = result("fortran.permute", {of(a()), in(order)});
  EXPECT_EQ(shape(turned), (Numbers{3, 2}));
  EXPECT_EQ(values(turned), (Doubles{3, -4, 5, 1, 1.5, -9}));
  EXPECT_EQ(values(result("fortran.slice", {of(a()), in(2), in(1), in(2)})), (Doubles{3, 1, 5, -9}));
  EXPECT_EQ(values(result("fortran.slice", {of(a()), in(2), in(2), in(1), in(3)})), (Doubles{-4, 1.5, 5, -9}));
  for (const int last : {0, -1})
    EXPECT_EQ(shape(result("fortran.slice", {of(a()), in(2), in(1), in(1), in(last)})), (Numbers{2, 0}));
  EXPECT_EQ(shape(result("fortran.join.cat", {in(2), of(a()), of(a())})), (Numbers{2, 6}));
  EXPECT_EQ(shape(result("fortran.join.stack", {in(3), of(a()), of(a())})), (Numbers{2, 3, 2}));
  EXPECT_EQ(values(result("fortran.strides", {of(a())})), (Doubles{1, 2}));
}

TEST_P(FortranFunctions, MakeTensorsOfShapesOfFortran) {
  Numbers wanted{2, 3};
  const fpt_tensor made = result("fortran.create.full", {in(wanted), in("float64"), in(""), in(true), in(1.5)});
  EXPECT_EQ(shape(made), wanted);
  EXPECT_TRUE(has_graph(made));
  EXPECT_EQ(values(result("fortran.spread.arange", {in("int32"), in("cpu"), in(false), in(1), in(7), in(2)})),
            (Doubles{1, 3, 5}));
  EXPECT_EQ(shape(result("fortran.like.zeros_like", {of(made), in(""), in(""), in(false)})), wanted);
  fpt_tensor none = 0;
  EXPECT_FAILS(call("fortran.create.zeros", {in(wanted), in("flaot64"), in(""), in(false)}, &none), FPT_ERR_ARGUMENT,
               "torch has no element type 'flaot64'; did you mean 'float64'?");
}

TEST_P(FortranFunctions, TakeNumbersOfClassesOfAnyIntegerType) {
  const Doubles scores{0, 2, 1, 1, 0, 3};
  const auto loss = [&](fpt_tensor classes) {
    // cases are on the first axis of torch
    const fpt_tensor given = tensor(scores, layout() == 0 ? Numbers{3, 2} : Numbers{2, 3});
    return values(result("fortran.loss.cross_entropy", {of(given), of(classes), in("sum")}));
  };
  const Doubles expected = loss(tensor_of<int64_t>({0, 2}, FPT_INT64, {2}));
  EXPECT_EQ(loss(tensor_of<int32_t>({0, 2}, FPT_INT32, {2})), expected);
  EXPECT_EQ(loss(tensor_of<int8_t>({0, 2}, FPT_INT8, {2})), expected);
}

TEST_P(FortranFunctions, OverwriteBesideTheGraph) {
  const fpt_tensor target = computed(numbers, extents);
  want_gradients(target);
  EXPECT_OK(call("fortran.overwrite", {of(target), of(tensor({1, 2, 3, 4, 5, 6}, {2, 3}))}));
  EXPECT_EQ(values(target), (Doubles{1, 2, 3, 4, 5, 6}));
  EXPECT_OK(call("fortran.overwrite", {of(target), in(2.0)}));
  EXPECT_EQ(values(target), Doubles(6, 2));
  EXPECT_TRUE(has_graph(target));
}

TEST_P(FortranFunctions, RefuseWhatIsNotThere) {
  fpt_tensor none = 0;
  for (const int axis : {0, 3, -1}) {
    EXPECT_FAILS(call("fortran.along.cumsum", {of(a()), in(axis)}, &none), FPT_ERR_ARGUMENT,
                 "there is no axis " + std::to_string(axis) + " in a tensor of rank 2: axes count from 1");
    EXPECT_FAILS(call("fortran.reduce.sum", {of(a()), in(false), in(axis)}, &none), FPT_ERR_ARGUMENT,
                 "there is no axis");
  }
  EXPECT_FAILS(call("fortran.slice", {of(a()), in(2), in(0), in(1)}, &none), FPT_ERR_ARGUMENT,
               "there is no section 0:3:1 of an axis with 3 elements");
  EXPECT_FAILS(call("fortran.slice", {of(a()), in(2), in(1), in(0)}, &none), FPT_ERR_ARGUMENT, "1:3:0");
  EXPECT_FAILS(call("fortran.slice", {of(a()), in(2), in(1), in(1), in(4)}, &none), FPT_ERR_ARGUMENT, "1:4:1");
  EXPECT_FAILS(call("fortran.join.cat", {in(1)}, &none), FPT_ERR_ARGUMENT, "there are no tensors to join");
  EXPECT_FAILS(call("fortran.overwrite", {of(a()), of(tensor({1, 2, 3}, {3}))}), FPT_ERR_SHAPE,
               layout() == 0 ? "the tensor is float64 (3, 2), Fortran (2, 3), the array float64 (3,)"
                             : "the tensor is float64 (2, 3), the array float64 (3,)");
  EXPECT_FAILS(call("fortran.overwrite", {of(a()), in(1.0)}, &none), FPT_ERR_RESULT_COUNT, "no result");
  EXPECT_FAILS(call("fortran.nothing", {of(a())}, &none), FPT_ERR_HOOK, "torch has no function");
  EXPECT_FAILS(call("fortran.reduce.sum", {in(1.0), in(false)}, &none), FPT_ERR_ARGUMENT,
               "argument 1 must be a tensor");
  EXPECT_FAILS(call("fortran.reduce.sum", {of(a())}, &none), FPT_ERR_ARGUMENT, "argument 2 is missing");
}

TEST_P(FortranFunctions, SayWhatTorchWasCalledWith) {
  fpt_tensor none = 0;
  EXPECT_FAILS(call("fortran.join.cat", {in(1), of(a()), of(tensor({1, 2}, {1, 2}))}, &none), FPT_ERR_PYTHON,
               "fortran.join.cat of torch: RuntimeError: Sizes of tensors must match");
  EXPECT_FAILS(call("fortran.join.cat", {in(1), of(a()), of(tensor({1, 2}, {1, 2}))}, &none), FPT_ERR_PYTHON,
               layout() == 0 ? "\n  argument 1: 1\n  argument 2: float64 (3, 2), Fortran (2, 3)\n"
                             : "\n  argument 1: 1\n  argument 2: float64 (2, 3)\n");
}

TEST_P(FortranFunctions, AssignValuesGraphAndRequiresGrad) {
  const fpt_tensor source = computed({2, 3}, {2}), target = computed({0, 0}, {2});
  want_gradients(source);
  for (const double factor : {2.0, 3.0}) {
    EXPECT_OK(let(FPT_VALUES, target, result("mul", {of(source), in(factor)})));
    EXPECT_EQ(values(target), (Doubles{2 * factor, 3 * factor}));
    EXPECT_TRUE(has_graph(target));
    EXPECT_OK(call("fortran.clear_grad", {of(source)}));
    go_back(target);
    EXPECT_EQ(gradient(source), (Doubles{factor, factor})) << "the graph of the assignment before is gone";
  }
  EXPECT_OK(let(FPT_VALUES, target, computed({1, 1}, {2})));
  EXPECT_FALSE(has_graph(target));
  EXPECT_OK(let(FPT_VALUES, source, computed({5, 5}, {2})));
  EXPECT_EQ(values(source), (Doubles{5, 5}));
  EXPECT_FALSE(has_graph(source));
}

TEST_P(FortranFunctions, AssignWithinAMemory) {
  const fpt_tensor memory = tensor({0, 1, 2, 3}, {4});
  const auto part = [&](int first, int last) {
    return result("fortran.slice", {of(memory), in(1), in(first), in(1), in(last)});
  };
  EXPECT_OK(let(FPT_VALUES, part(2, 4), part(1, 3)));
  EXPECT_EQ(values(memory), (Doubles{0, 0, 1, 2}));
}

TEST_P(FortranFunctions, AGradientIsTheOneThatThereIsWhenItIsUsed) {
  const fpt_tensor source = computed({1, 3}, {2});
  want_gradients(source);
  const fpt_tensor named = gradient_of(source);
  void* data = nullptr;
  int64_t extents[1], strides[1];
  const auto address = [&] { return outcome(fpt_tensor_data(named, FPT_FLOAT64, 1, &data, extents, strides)); };
  EXPECT_FAILS(address(), FPT_ERR_ARGUMENT, "there is no gradient yet");
  EXPECT_FAILS(call("fortran.reduce.sum", {of(named), in(false)}), FPT_ERR_ARGUMENT, "there is no gradient yet");
  for (const double factor : {2.0, 5.0}) {
    EXPECT_OK(call("fortran.zero_grad", {of(source)}));
    go_back(result("mul", {of(source), in(factor)}));
    EXPECT_EQ(values(named), (Doubles{factor, factor}));
    EXPECT_OK(address());
    EXPECT_EQ(static_cast<const double*>(data)[1], factor);
    EXPECT_OK(call("fortran.zero_grad", {of(source)}));
    EXPECT_EQ(static_cast<const double*>(data)[1], factor) << "memory stays until the next question";
  }
}

TEST_P(FortranFunctions, AssignResultsLossesAndGradients) {
  const fpt_tensor source = computed({1, 3}, {2}), target = computed({0}, {1}), gradients = computed({0, 0}, {2});
  want_gradients(source);
  EXPECT_OK(let(FPT_MEAN, target, source));
  EXPECT_EQ(values(target), (Doubles{2}));
  EXPECT_OK(let(FPT_MSE_LOSS, target, source, computed({0, 0}, {2}), 2));
  EXPECT_EQ(values(target), (Doubles{10}));
  EXPECT_FAILS(let(FPT_GRADIENT, gradients, source), FPT_ERR_ARGUMENT, "gradient: there is no gradient yet");
  EXPECT_OK(call("fortran.clear_grad", {of(source)}));
  go_back(target);
  EXPECT_OK(let(FPT_GRADIENT, gradients, source));
  EXPECT_EQ(values(gradients), (Doubles{2, 6}));
  EXPECT_OK(call("fortran.clear_grad", {of(source)}));
  EXPECT_EQ(gradient(source), (Doubles{0, 0}));
  EXPECT_OK(call("fortran.zero_grad", {of(source)}));
  EXPECT_FAILS(let(FPT_GRADIENT, gradients, source), FPT_ERR_ARGUMENT, "gradient: there is no gradient yet");
}

TEST_P(FortranFunctions, LossesAreThoseOfTheirNames) {
  const fpt_tensor values = computed({1, 4, 2, 2, 0, 3}, {3, 2}), one = computed({0}, {1});
  const fpt_tensor target = computed({0, 1, 0, 1, 1, 1}, {3, 2}), all = computed(Doubles(6), {3, 2});
  for (const int32_t how : {1, 2}) {
    const fpt_tensor by_name = result("fortran.loss.mse_loss", {of(values), of(target), in(how == 1 ? "mean" : "sum")});
    EXPECT_OK(let(FPT_MSE_LOSS, one, values, target, how));
    EXPECT_EQ(this->values(one), this->values(by_name));
  }
  EXPECT_OK(let(FPT_MSE_LOSS, all, values, target, 0));
  EXPECT_EQ(this->values(all), (Doubles{1, 9, 4, 1, 1, 4}));
  EXPECT_OK(let(FPT_CROSS_ENTROPY, one, values, target, 2));
  EXPECT_EQ(this->values(one), this->values(result("fortran.loss.cross_entropy", {of(values), of(target), in("sum")})));
  EXPECT_OK(let(FPT_SUM, one, values));
  EXPECT_EQ(this->values(one), (Doubles{12}));
}

TEST_P(FortranFunctions, RefuseToLetATensorHaveWhatIsNotThere) {
  const fpt_tensor tensor = computed({1, 2}, {2}), other = computed({1, 2, 3}, {3});
  EXPECT_FAILS(let(FPT_CROSS_ENTROPY + 1, tensor, tensor), FPT_ERR_ARGUMENT, "there are no values 6");
  EXPECT_FAILS(let(-1, tensor, tensor), FPT_ERR_ARGUMENT, "there are no values -1");
  EXPECT_FAILS(let(FPT_MSE_LOSS, tensor, tensor, tensor, 3), FPT_ERR_ARGUMENT, "there is no reduction 3");
  EXPECT_FAILS(let(FPT_MSE_LOSS, tensor, tensor), FPT_ERR_NOT_LOADED, "the loss has no target");
  EXPECT_FAILS(let(FPT_VALUES, 0, tensor), FPT_ERR_NOT_LOADED, "this is not a tensor with contents yet");
  const test::Outcome unlike = let(FPT_MSE_LOSS, tensor, tensor, other);
  EXPECT_FAILS(unlike, FPT_ERR_PYTHON, "mse_loss: RuntimeError: The size of tensor a");
  EXPECT_FAILS(unlike, FPT_ERR_PYTHON, "\n  first: float64 (2,)\n  second: float64 (3,)");
  const fpt_tensor none = 0;
  EXPECT_FAILS(outcome(fpt_tensor_backward(tensor, &none, 0)), FPT_ERR_NOT_LOADED, "not a tensor with contents yet");
  EXPECT_FAILS(outcome(fpt_tensor_backward(tensor, nullptr, 0)), FPT_ERR_PYTHON, "backward: RuntimeError: ");
}

TEST_P(FortranFunctions, GradientsFromAGivenOneAndAgainFromTheGraph) {
  const fpt_tensor source = computed({1, 3}, {2}), given = computed({2, 5}, {2});
  want_gradients(source);
  const fpt_tensor square = result("mul", {of(source), of(source)});
  EXPECT_OK(outcome(fpt_tensor_backward(square, &given, 1)));
  EXPECT_OK(outcome(fpt_tensor_backward(square, &given, 0)));
  EXPECT_EQ(gradient(source), (Doubles{8, 60}));
  EXPECT_FAILS(outcome(fpt_tensor_backward(square, &given, 0)), FPT_ERR_PYTHON, "a second time");
}

}  // namespace
}  // namespace fpt
