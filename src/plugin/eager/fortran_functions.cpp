// SPDX-License-Identifier: MIT
#include "plugin/eager/fortran_functions.hpp"

#include <ATen/ops/cat.h>
#include <ATen/ops/stack.h>

#include "plugin/autograd_engine.hpp"
#include "plugin/direct_tensor.hpp"
#include "plugin/eager/dtypes.hpp"
#include "plugin/eager/eager_tensor.hpp"
#include "plugin/eager/losses.hpp"

namespace fpt::direct {
namespace {

/// The operator behind a name below torch.
Operators& operators_of(const std::string& name) {
  std::string symbol = "aten::" + name;
  std::replace(symbol.begin(), symbol.end(), '.', '_');  // linalg.vector_norm
  return operators_named(symbol);
}

at::Tensor first_of(const c10::IValue& result) {
  return result.isTuple() ? result.toTupleRef().elements()[0].toTensor() : result.toTensor();
}

/// A maker of torch by its name, with element type and device where the texts at `kind` say one. Whether gradients are
/// computed comes behind them.
c10::IValue made_by(const std::string& name, GivenArguments given, FunctionCall& call, std::size_t kind) {
  if (!call.text(kind).empty()) given.add(call.text(kind), "dtype");
  if (!call.text(kind + 1).empty()) given.add(call.text(kind + 1), "device");
  const bool is_trained = call.logical(kind + 2);
  at::Tensor made = operators_of(name).call(given).toTensor();
  return is_trained ? made.set_requires_grad(true) : made;
}

c10::IValue create(FunctionCall& call, const std::string& name) {
  GivenArguments given;
  given.add(c10::List<int64_t>(call.shape(call.integers(0))));
  if (call.has(4)) given.add(call.number(4));
  return made_by(name, std::move(given), call, 1);
}

c10::IValue spread(FunctionCall& call, const std::string& name) {
  GivenArguments given;
  for (std::size_t i = 3; i < call.count(); ++i) given.add(call.number(i));
  return made_by(name, std::move(given), call, 0);
}

c10::IValue like(FunctionCall& call, const std::string& name) {
  GivenArguments given;
  given.add(call.tensor(0));
  return made_by(name, std::move(given), call, 1);
}

c10::IValue to(FunctionCall& call, const std::string&) {
  at::TensorOptions options;
  if (!call.text(1).empty()) options = options.dtype(dtype_named(call.text(1)));
  if (!call.text(2).empty()) options = options.device(device_named(call.text(2)));
  return call.tensor(0).to(options, /*non_blocking=*/call.logical(3));
}

c10::IValue reduce(FunctionCall& call, const std::string& name) {
  const at::Tensor& tensor = call.tensor(0);
  const bool keeps = call.logical(1);
  GivenArguments given;
  given.add(tensor);
  if (!call.has(2)) {
    if (name == "logsumexp") {
      c10::List<int64_t> all;
      for (int64_t axis = 0; axis < tensor.dim(); ++axis) all.push_back(axis);
      given.add(all, "dim");
    }
    const at::Tensor result = first_of(operators_of(name).call(given));
    return keeps ? result.reshape(at::DimVector(static_cast<std::size_t>(tensor.dim()), 1)) : result;
  }
  const int64_t place = call.axis(call.integer(2), tensor.dim());
  given.add(place, "dim");
  const at::Tensor result = first_of(operators_of(name).call(given));
  return keeps ? result.unsqueeze(place) : result;
}

c10::IValue place(FunctionCall& call, const std::string& name) {
  GivenArguments given;
  if (call.has(1)) {
    given.add(call.tensor(0));
    given.add(call.axis(call.integer(1), call.tensor(0).dim()));
  } else {
    given.add(call.in_order_of_fortran(call.tensor(0)));
  }
  return operators_of(name).call(given).toTensor().add(1);
}

c10::IValue along(FunctionCall& call, const std::string& name) {
  const int64_t axis = call.axis(call.integer(1), call.tensor(0).dim());
  GivenArguments given;
  given.add(call.tensor(0));
  if (name == "flip")
    given.add(c10::List<int64_t>({axis}), "dims");
  else
    given.add(axis, "dim");
  return first_of(operators_of(name).call(given));
}

c10::IValue join(FunctionCall& call, const std::string& name) {
  if (!call.has(1)) throw NotHere();
  std::vector<at::Tensor> tensors;
  for (std::size_t i = 1; i < call.count(); ++i) tensors.push_back(call.tensor(i));
  const int64_t rank = tensors[0].dim() + (name == "stack" ? 1 : 0);
  const int64_t axis = call.axis(call.integer(0), rank);
  return name == "stack" ? at::stack(tensors, axis) : at::cat(tensors, axis);
}

c10::IValue reshape(FunctionCall& call, const std::string&) {
  std::vector<int64_t> extents = call.integers(1);
  std::reverse(extents.begin(), extents.end());
  return call.in_order_of_fortran(call.in_order_of_fortran(call.tensor(0)).reshape(extents));
}

c10::IValue permute(FunctionCall& call, const std::string&) {
  const at::Tensor& tensor = call.tensor(0);
  std::vector<int64_t> axes = call.integers(1);
  for (int64_t& axis : axes) axis = call.axis(axis, tensor.dim());
  return tensor.permute(call.shape(std::move(axes)));
}

c10::IValue slice(FunctionCall& call, const std::string&) {
  const at::Tensor& tensor = call.tensor(0);
  const int64_t axis = call.axis(call.integer(1), tensor.dim()), extent = tensor.size(axis);
  const int64_t first = call.integer(2), step = call.integer(3), last = call.has(4) ? call.integer(4) : extent;
  if (first < 1 || last > extent || step < 1)
    fail(FPT_ERR_ARGUMENT, "there is no section ", first, ':', last, ':', step, " of an axis with ", extent,
         " elements");
  return tensor.slice(axis, first - 1, last, step);
}

c10::IValue overwritten(FunctionCall& call, const std::string&) {
  at::Tensor& tensor = call.tensor(0);
  const c10::IValue& value = call.has(1) && call.names[1].empty() ? call.values[1] : throw NotHere();
  const at::NoGradGuard no_gradients;
  if (value.isScalar()) return tensor.fill_(value.toScalar()), end_graph(tensor), c10::IValue();
  const at::Tensor& given = call.tensor(1);
  if (given.sizes() != tensor.sizes())
    fail(FPT_ERR_SHAPE, "the tensor is ", kind_of(tensor, call.same_layout()), ", the array ",
         kind_of(given, call.same_layout()), "; nothing is broadcast");
  overwrite(tensor, given);
  end_graph(tensor);
  return {};
}

c10::IValue assigned(FunctionCall& call, const std::string&) {
  assign(call.tensor(0), call.tensor(1));
  return {};
}

c10::IValue assigned_result(FunctionCall& call, const std::string& name) {
  at::Tensor& target = call.tensor(0);
  GivenArguments rest;
  for (std::size_t i = 1; i < call.count(); ++i) rest.add(call.values[i], call.names[i]);
  assign(target, operators_of(name).call(rest).toTensor());
  return {};
}

/// Numbers of classes may be of any integer type; torch wants int64.
at::Tensor any_loss(const std::string& name, const at::Tensor& values, const at::Tensor& target,
                    const std::string& reduction) {
  const bool has_classes =
      (name == "cross_entropy" || name == "nll_loss") && !target.is_floating_point() && !target.is_complex();
  return loss_named(name, values, has_classes ? target.to(at::kLong) : target, reduction);
}

c10::IValue loss(FunctionCall& call, const std::string& name) {
  return any_loss(name, call.tensor(0), call.tensor(1), call.text(2));
}

c10::IValue assigned_loss(FunctionCall& call, const std::string& name) {
  assign(call.tensor(0), any_loss(name, call.tensor(1), call.tensor(2), call.text(3)));
  return {};
}

/// What else a loss takes is for Python.
c10::IValue network_loss(FunctionCall& call, const std::string& name) {
  const bool is_reduced = call.count() == 3 && call.names[2] == "reduction" && call.values[2].isString();
  if (call.count() != 2 && !is_reduced) throw NotHere();
  return loss_named(name, call.tensor(0), call.tensor(1), is_reduced ? call.values[2].toStringRef() : "");
}

c10::IValue assigned_gradient(FunctionCall& call, const std::string&) {
  assign(call.tensor(0), present_gradient(call.tensor(1)));
  return {};
}

c10::IValue clear_gradient(FunctionCall& call, const std::string&) {
  at::Tensor& gradient = call.tensor(0).mutable_grad();
  if (gradient.defined()) gradient.detach_().zero_();
  return {};
}

c10::IValue text_of_tensor(FunctionCall& call, const std::string&) {
  Plain<std::ostringstream> text;
  text << call.tensor(0).detach();
  return text.str();
}

c10::IValue requires_grad(FunctionCall& call, const std::string&) { return call.tensor(0).requires_grad(); }

c10::IValue set_requires_grad(FunctionCall& call, const std::string&) {
  call.tensor(0).requires_grad_(call.logical(1));
  return {};
}

c10::IValue backward(FunctionCall& call, const std::string&) {
  const at::Tensor gradient = call.has(2) ? call.tensor(2) : at::Tensor();
  stay_with_first_engine();
  call.tensor(0).backward(gradient, /*retain_graph=*/call.logical(1));
  return {};
}

c10::IValue zero_gradient(FunctionCall& call, const std::string&) {
  call.tensor(0).mutable_grad().reset();
  return {};
}

c10::IValue strides(FunctionCall& call, const std::string&) {
  const at::IntArrayRef found = call.tensor(0).strides();
  const std::vector<int64_t> turned = call.shape({found.begin(), found.end()});
  return at::tensor(turned, at::kLong);
}

c10::IValue manual_seed(FunctionCall& call, const std::string&) {
  const int64_t seed = call.count() == 1 ? call.integer(0) : throw NotHere();
  if (seed < 0) throw NotHere();
  at::manual_seed(static_cast<uint64_t>(seed));
  return {};
}

c10::IValue softsign(FunctionCall& call, const std::string&) {
  if (call.count() != 1) throw NotHere();
  const at::Tensor& tensor = call.tensor(0);
  return tensor.div(tensor.abs().add(1));
}

c10::IValue tanhshrink(FunctionCall& call, const std::string&) {
  if (call.count() != 1) throw NotHere();
  const at::Tensor& tensor = call.tensor(0);
  return tensor.sub(tensor.tanh());
}

struct Entry {
  std::string_view name;
  Own function;
};

constexpr Entry own_functions[] = {{"fortran.create", create},
                                   {"fortran.spread", spread},
                                   {"fortran.like", like},
                                   {"fortran.to", to},
                                   {"fortran.reduce", reduce},
                                   {"fortran.place", place},
                                   {"fortran.along", along},
                                   {"fortran.join", join},
                                   {"fortran.reshape", reshape},
                                   {"fortran.permute", permute},
                                   {"fortran.slice", slice},
                                   {"fortran.overwrite", overwritten},
                                   {"fortran.assign", assigned},
                                   {"fortran.assign_result", assigned_result},
                                   {"fortran.loss", loss},
                                   {"fortran.assign_loss", assigned_loss},
                                   {"fortran.assign_grad", assigned_gradient},
                                   {"fortran.clear_grad", clear_gradient},
                                   {"fortran.requires_grad", requires_grad},
                                   {"fortran.set_requires_grad", set_requires_grad},
                                   {"fortran.backward", backward},
                                   {"fortran.zero_grad", zero_gradient},
                                   {"fortran.strides", strides},
                                   {"fortran.text", text_of_tensor},
                                   {"manual_seed", manual_seed}};

constexpr Entry own_network_functions[] = {{"softsign", softsign}, {"tanhshrink", tanhshrink}};

template <std::size_t size>
Own function_in(const Entry (&entries)[size], std::string_view name) noexcept {
  const auto found =
      std::find_if(std::begin(entries), std::end(entries), [name](const Entry& each) { return each.name == name; });
  return found == std::end(entries) ? nullptr : found->function;
}

}  // namespace

Own own_function(std::string_view name) noexcept { return function_in(own_functions, name); }

Own own_network_function(std::string_view name) noexcept {
  return is_loss(name) ? network_loss : function_in(own_network_functions, name);
}

}  // namespace fpt::direct
