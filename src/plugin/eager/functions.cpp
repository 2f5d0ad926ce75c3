// SPDX-License-Identifier: MIT
#include "plugin/eager/functions.hpp"

#include <ATen/PythonTorchFunctionTLS.h>

#include <map>

#include "plugin/eager/eager_tensor.hpp"
#include "plugin/eager/own_functions.hpp"
#include "plugin/scalars.hpp"

namespace fpt::direct {
namespace {

/// Functions and methods that torch has written in Python, under names that operators have too: what these do is
/// another thing. test_eager_names.py compares.
constexpr std::string_view in_python[] = {
    "atleast_1d", "atleast_2d",   "atleast_3d", "backward", "block_diag", "broadcast_tensors", "cartesian_prod",
    "cdist",      "chain_matmul", "einsum",     "index",    "istft",      "meshgrid",          "norm",
    "resize",     "resize_as",    "split",      "stft",     "tensordot",  "unflatten",         "unique_consecutive"};

/// Of torch.nn.functional what is an operator, argument for argument. The others are functions in Python.
constexpr std::string_view of_networks[] = {"adaptive_avg_pool1d",
                                            "avg_pool1d",
                                            "avg_pool2d",
                                            "avg_pool3d",
                                            "bilinear",
                                            "channel_shuffle",
                                            "conv1d",
                                            "conv2d",
                                            "conv3d",
                                            "conv_tbc",
                                            "conv_transpose1d",
                                            "conv_transpose2d",
                                            "conv_transpose3d",
                                            "cosine_similarity",
                                            "gelu",
                                            "hardshrink",
                                            "linear",
                                            "one_hot",
                                            "pairwise_distance",
                                            "pdist",
                                            "pixel_shuffle",
                                            "pixel_unshuffle",
                                            "prelu",
                                            "scaled_dot_product_attention",
                                            "softplus",
                                            "softshrink"};

/// What does nothing else there with one tensor, and settings by name.
constexpr std::string_view of_one_tensor[] = {"celu",       "elu",         "hardsigmoid", "hardswish", "hardtanh",
                                              "leaky_relu", "log_softmax", "mish",        "relu",      "relu6",
                                              "selu",       "silu",        "softmax"};

template <std::size_t size>
bool is_among(const std::string_view (&names)[size], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

bool skip(std::string_view& name, std::string_view prefix) {
  if (name.substr(0, prefix.size()) != prefix) return false;
  name.remove_prefix(prefix.size());
  return true;
}

using FunctionPtr = std::unique_ptr<Function>;

FunctionPtr of_own(Own own, std::string_view name) { return FunctionPtr(new Function{own, std::string(name)}); }

FunctionPtr of_operator(const std::string& name, std::size_t most_places = SIZE_MAX) {
  Operators& operators = operators_named(name);
  if (operators.empty()) throw NotHere();
  return FunctionPtr(new Function{nullptr, name, &operators, most_places});
}

FunctionPtr of_torch(std::string_view name) {
  const std::string_view whole = name;
  if (skip(name, "nn.functional.")) {
    if (const Own own = own_network_function(name)) return of_own(own, name);
    if (name == "logsigmoid") return of_operator("aten::log_sigmoid");
    const bool is_wrapper = is_among(of_one_tensor, name);
    if (!is_wrapper && !is_among(of_networks, name)) throw NotHere();
    return of_operator(concat("aten::", name), is_wrapper ? 1 : SIZE_MAX);
  }
  for (const std::string_view folder : {"linalg", "special", "fft"})
    if (skip(name, concat(folder, '.'))) return of_operator(concat("aten::", folder, '_', name));
  if (const Own own = own_function(whole)) return of_own(own, name);
  if (!skip(name, "Tensor.")) skip(name, "ops.aten.");
  const bool is_public = !name.empty() && name.front() != '_' && name.find_first_of(".:") == name.npos;
  if (!is_public || is_among(in_python, name)) throw NotHere();
  return of_operator(concat("aten::", name));
}

FunctionPtr find(std::string_view name) {
  if (!skip(name, "plain.")) skip(name, "torch.");
  return of_torch(name);
}

Settings settings_of_torch(bool same_layout) {
  Settings settings;
  settings.name = "torch";
  settings.same_layout = same_layout;
  return settings;
}

}  // namespace

const c10::IValue& FunctionCall::at(std::size_t index) const {
  if (index >= values.size() || !names[index].empty()) throw NotHere();
  return values[index];
}

at::Tensor& FunctionCall::tensor(std::size_t index) {
  if (!at(index).isTensor()) throw NotHere();
  return values[index].toTensor();
}

at::Tensor& FunctionCall::only_tensor() {
  if (count() != 1) throw NotHere();
  return tensor(0);
}

int64_t FunctionCall::integer(std::size_t index) const {
  if (!at(index).isInt()) throw NotHere();
  return values[index].toInt();
}

bool FunctionCall::logical(std::size_t index) const {
  if (!at(index).isBool()) throw NotHere();
  return values[index].toBool();
}

c10::IValue Function::operator()(FunctionCall& call) const {
  if (own) return own(call, name);
  const auto places = static_cast<std::size_t>(
      std::count_if(call.names.begin(), call.names.end(), [](std::string_view each) { return each.empty(); }));
  if (places > most_places) throw NotHere();
  return operators->call(call);
}

const Function& function_named(std::string_view name) {
  static std::shared_mutex& mutex = *new std::shared_mutex;
  static auto& known = *new std::map<std::string, FunctionPtr, std::less<>>;
  const auto given = [](const FunctionPtr& found) -> const Function& { return found ? *found : throw NotHere(); };
  {
    const std::shared_lock<std::shared_mutex> lock(mutex);
    const auto entry = known.find(name);
    if (entry != known.end()) return given(entry->second);
  }
  FunctionPtr made;
  try {
    made = find(name);
  } catch (const NotHere&) {
  }
  const std::unique_lock<std::shared_mutex> lock(mutex);
  return given(known.emplace(name, std::move(made)).first->second);
}

c10::IValue call_function(std::string_view name, FunctionCall& call) {
  if (at::impl::torch_function_mode_enabled()) throw NotHere();  // such as that of torch.set_default_device
  return function_named(name)(call);
}

c10::IValue call_function(std::string_view name, bool same_layout, Args inputs, at::Tensor tensors[]) {
  static const Settings& reversed = *new Settings(settings_of_torch(false));
  static const Settings& same = *new Settings(settings_of_torch(true));
  const Settings& settings = same_layout ? same : reversed;
  if (at::impl::torch_function_mode_enabled()) throw NotHere();  // such as that of torch.set_default_device
  const Function& function = function_named(name);
  std::optional<FramePool::Lease> frame;
  FunctionCall call;
  call.values.reserve(static_cast<std::size_t>(inputs.count));
  call.names.reserve(static_cast<std::size_t>(inputs.count));
  for (int32_t i = 0; i < inputs.count; ++i) {
    const fpt_arg& input = inputs[i];
    if (tensors[i].defined()) {
      call.add(std::move(tensors[i]), input.name);
    } else if (is_value(input)) {
      call.add(value_of(input), input.name);
    } else {
      if (!frame) (*frame.emplace(function.frames[same_layout])).begin(settings, /*may_keep=*/true);
      call.add((**frame).tensor(settings, input, "input", i), input.name);
    }
  }
  c10::IValue result;
  try {
    result = function(call);
  } catch (const NotHere&) {
    throw;
  } catch (...) {
    rethrow_as_python(concat(name, " of torch"), described(inputs, same_layout));
  }
  if (!frame) return result;
  std::vector<at::Tensor> results;
  if (result.isTensor()) results.push_back(result.toTensor());
  if (result.isTensorList()) results = result.toTensorVector();
  if (result.isTuple())
    for (const c10::IValue& each : result.toTupleRef().elements()) results.push_back(each.toTensor());
  call.values.clear();  // what is left of an input then was kept
  (**frame).finish(concat(name, " of torch"), results);
  return result;
}

}  // namespace fpt::direct
