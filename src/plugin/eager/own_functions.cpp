// SPDX-License-Identifier: MIT
#include "plugin/eager/own_functions.hpp"

#include "calls/python_side.hpp"
#include "plugin/autograd_engine.hpp"
#include "plugin/eager/losses.hpp"

namespace fpt::direct {
namespace {

c10::IValue softsign(FunctionCall& call, const std::string&) {
  const at::Tensor& tensor = call.only_tensor();
  return tensor.div(tensor.abs().add(1));
}

c10::IValue tanhshrink(FunctionCall& call, const std::string&) {
  const at::Tensor& tensor = call.only_tensor();
  return tensor.sub(tensor.tanh());
}

c10::IValue manual_seed(FunctionCall& call, const std::string&) {
  const int64_t seed = call.count() == 1 ? call.integer(0) : throw NotHere();
  if (seed < 0) throw NotHere();
  at::manual_seed(static_cast<uint64_t>(seed));
  return {};
}

/// Beside scripts tensors are printed as Python prints them.
c10::IValue text_of_tensor(FunctionCall& call, const std::string&) {
  if (python_is_started()) throw NotHere();
  Plain<std::ostringstream> text;
  text << call.only_tensor().detach();
  return text.str();
}

c10::IValue requires_grad(FunctionCall& call, const std::string&) { return call.only_tensor().requires_grad(); }

c10::IValue strides(FunctionCall& call, const std::string&) { return call.only_tensor().strides(); }

c10::IValue set_gradient(FunctionCall& call, const std::string&) {
  if (call.count() != 2 || !call.values[1].isNone()) throw NotHere();
  call.tensor(0).mutable_grad().reset();
  return {};
}

c10::IValue backward(FunctionCall& call, const std::string&) {
  const std::size_t last = call.count() - 1;
  if (last < 1 || last > 2 || call.names[last] != "retain_graph" || !call.values[last].isBool()) throw NotHere();
  compute_gradients(call.tensor(0), last == 2 ? call.tensor(1) : at::Tensor(), call.values[last].toBool());
  return {};
}

struct Entry {
  std::string_view name;
  Own function;
};

constexpr Entry own_functions[] = {{"Tensor.__str__", text_of_tensor},
                                   {"Tensor.backward", backward},
                                   {"Tensor.grad.__set__", set_gradient},
                                   {"Tensor.requires_grad.__get__", requires_grad},
                                   {"Tensor.stride", strides},
                                   {"manual_seed", manual_seed}};

constexpr Entry own_network_functions[] = {{"softsign", softsign}, {"tanhshrink", tanhshrink}};

template <std::size_t size>
Own function_in(const Entry (&entries)[size], std::string_view name) noexcept {
  const auto found =
      std::find_if(std::begin(entries), std::end(entries), [name](const Entry& each) { return each.name == name; });
  return found == std::end(entries) ? nullptr : found->function;
}

}  // namespace

void compute_gradients(const at::Tensor& tensor, const at::Tensor& gradient, bool keeps_graph) {
  stay_with_first_engine();
  try {
    tensor.backward(gradient, keeps_graph);
  } catch (const std::exception&) {
    if (python_is_started()) python_side().throw_raised();  // a function or a hook of Python has a part in the graph
    throw;
  }
}

Own own_function(std::string_view name) noexcept { return function_in(own_functions, name); }

Own own_network_function(std::string_view name) noexcept {
  return is_loss(name) ? network_loss : function_in(own_network_functions, name);
}

}  // namespace fpt::direct
