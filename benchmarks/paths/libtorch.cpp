// SPDX-License-Identifier: MIT
/// A saved model through libtorch as one would call it by hand, and as FTorch does: tensors made once on the memory of
/// the arrays, the module loaded as it is, its result copied into the array. What goes wrong ends the program: a
/// benchmark has no use for a result that is not there.
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

// Not <torch/torch.h>, which takes a minute to compile.
#include <ATen/ATen.h>
#include <torch/csrc/api/include/torch/optim/adam.h>
#include <torch/csrc/api/include/torch/optim/sgd.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/serialization/import.h>

namespace {

enum Role { is_input, is_output, is_target };

struct Model {
  torch::jit::Module module;
  std::vector<torch::jit::IValue> inputs;
  at::Tensor output, target;
  std::unique_ptr<torch::optim::Optimizer> optimizer;
};

}  // namespace

extern "C" {

/// A model of the TorchScript file, which is trained with "adam" or "sgd" if one is named; null if it cannot be loaded.
void* bench_libtorch_load(const char* file, const char* optimizer, double rate) try {
  auto model = std::make_unique<Model>();
  model->module = torch::jit::load(file);
  std::vector<at::Tensor> parameters;
  for (const auto& parameter : model->module.parameters()) parameters.push_back(parameter);
  if (optimizer == std::string("adam"))
    model->optimizer = std::make_unique<torch::optim::Adam>(parameters, torch::optim::AdamOptions(rate));
  else if (optimizer == std::string("sgd"))
    model->optimizer = std::make_unique<torch::optim::SGD>(parameters, torch::optim::SGDOptions(rate));
  else
    model->module.eval();
  return model.release();
} catch (const std::exception& failure) {
  std::fprintf(stderr, "%s\n", failure.what());
  return nullptr;
}

/// Make a tensor on memory of the caller, float32 or float64; extents and strides are in elements, slowest axis first.
void bench_libtorch_wrap(void* handle, int role, void* data, int is_double, int rank, const int64_t* extents,
                         const int64_t* strides) {
  const auto count = static_cast<std::size_t>(rank);
  const auto tensor = at::from_blob(data, {extents, count}, {strides, count}, is_double ? at::kDouble : at::kFloat);
  auto& model = *static_cast<Model*>(handle);
  if (role == is_input) model.inputs.emplace_back(tensor);
  if (role == is_output) model.output = tensor;
  if (role == is_target) model.target = tensor;
}

/// A forward call, or one step with the mean squared error, which is returned.
double bench_libtorch_call(void* handle) {
  auto& model = *static_cast<Model*>(handle);
  if (!model.optimizer) {
    const at::NoGradGuard no_gradients;
    const auto result = model.module.forward(model.inputs);
    if (model.output.defined()) model.output.copy_(result.toTensor());
    return 0;
  }
  model.optimizer->zero_grad();
  auto loss = at::mse_loss(model.module.forward(model.inputs).toTensor(), model.target);
  loss.backward();
  model.optimizer->step();
  return loss.item<double>();
}

void bench_libtorch_free(void* handle) { delete static_cast<Model*>(handle); }

}  // extern "C"
