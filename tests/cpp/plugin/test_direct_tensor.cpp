// SPDX-License-Identifier: MIT
/// Tensors of libtorch behind torch_tensor. What is computed with them is in tests/fortran/values_*.f90 and
/// tests/operations.
#include <ATen/ops/tensor.h>

#include "plugin/direct_tensor.hpp"
#include "plugin/parts.hpp"
#include "support.hpp"

namespace fpt::test {
namespace {

at::Tensor numbers() { return at::tensor(std::vector<c10::complex<float>>{{1, 2}, {3, 4}}); }

TEST(DirectTensor, HasItsAxesInTheOrderOfFortran) {
  const at::Tensor made = numbers().view({1, 2});
  EXPECT_EQ(shape_text(direct::tensor_of(made, false)->array()), "(2, 1)");
  EXPECT_EQ(shape_text(direct::tensor_of(made, true)->array()), "(1, 2)");
}

TEST(DirectTensor, AConjugatedTensorStaysForThoseWhoUseItWhenItsMemoryIsAskedFor) {
  const TensorPtr tensor = direct::tensor_of(numbers().conj(), false);
  const direct::Held used = direct::at_tensor_of(*tensor);
  const auto shown = [&tensor] { return static_cast<const std::complex<float>*>(tensor->array().data); };
  const auto* first = shown();
  EXPECT_EQ(first[1], std::complex<float>(3, -4));
  EXPECT_EQ(shown(), first) << "it is carried out once";
  EXPECT_TRUE(used->is_conj()) << "what another thread uses is what it was";
  EXPECT_NE(used->const_data_ptr(), first);
  EXPECT_EQ(direct::at_tensor_of(*tensor)->const_data_ptr(), first);
}

TEST(DirectTensor, KeepsTheOwnerOfItsMemoryAsLongAsATensorOfTorchLives) {
  const auto memory = std::make_shared<std::vector<float>>(6);
  const std::weak_ptr<std::vector<float>> watched = memory;
  Engine& engine = direct::engine_of_torch();
  TensorPtr tensor = engine.tensor_of(array_of(out(*memory)), memory, false);
  at::Tensor held = *direct::at_tensor_of(*tensor);
  EXPECT_FALSE(engine.is_on_memory(*tensor, 0)) << "it is not that of the caller";
  tensor.reset();
  EXPECT_EQ(watched.use_count(), 2);
  held.reset();
  EXPECT_EQ(watched.use_count(), 1);
}

TEST(DirectTensor, OfMemoryOfTheCallerHasANumber) {
  Engine& engine = direct::engine_of_torch();
  std::vector<float> x(6);
  const uint64_t before = engine.last_on_memory();
  const TensorPtr tensor = engine.tensor_of(array_of(in(x)), nullptr, false);
  EXPECT_EQ(engine.last_on_memory(), before + 1);
  EXPECT_TRUE(engine.is_on_memory(*tensor, before));
  EXPECT_FALSE(engine.is_on_memory(*tensor, before + 1));
  EXPECT_FALSE(engine.is_on_memory(*direct::tensor_of(numbers(), false), before));
}

}  // namespace
}  // namespace fpt::test
