// SPDX-License-Identifier: MIT
#include "values/fortran_functions.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

#include "arrays/copy.hpp"
#include "arrays/scalar.hpp"
#include "base/error.hpp"
#include "values/assignment.hpp"
#include "values/engine.hpp"

namespace fpt {
namespace {

int64_t rank_of(const TensorPtr& tensor) { return facts_of(tensor).rank(); }

TensorPtr in_layout(TensorPtr tensor, bool same_layout) {
  return tensor->same_layout() == same_layout ? std::move(tensor) : reversed_view(tensor, same_layout);
}

/// torch.nn.functional.mse_loss, ...; an empty reduction is torch's default. Numbers of classes may be of any integer
/// type, and torch wants int64.
TensorPtr loss_of(std::string_view name, const TensorPtr& values, TensorPtr target, std::string reduction,
                  bool same_layout) {
  if ((name == "cross_entropy" || name == "nll_loss") && !facts_of(target).is_inexact())
    target = call_for_tensor("Tensor.to", {{target}, {std::string("int64"), "dtype"}}, same_layout);
  TorchArguments given{{values}, {std::move(target)}};
  if (!reduction.empty()) given.push_back({std::move(reduction), "reduction"});
  return call_for_tensor(concat("nn.functional.", name), given, same_layout);
}

/// In the order of the constants in ftn_pytorch.h.
constexpr const char* names_of_values[] = {"assignment", "gradient", "sum", "mean", "mse_loss", "cross_entropy"};
static_assert(std::size(names_of_values) == FPT_CROSS_ENTROPY + 1, "one for each kind of values");
constexpr const char* reductions[] = {"none", "mean", "sum"};

/// Of tensors in one order of axes.
TensorPtr values_of(int32_t what, const TensorPtr& first, const TensorPtr& second, int32_t reduction) {
  if (what == FPT_VALUES) return first;
  Engine& chosen = second ? engine_of(*first, *second) : engine_of(*first);
  if (TensorPtr made = chosen.values(what, *first, second.get(), reduction)) return made;
  const bool layout = first->same_layout();
  if (!second) return call_for_tensor(name_of_values(what), {{first}}, layout);
  return loss_of(name_of_values(what), first, second, reductions[reduction], layout);
}

/// A failure as one of `name`, with the operands where torch has refused them.
[[noreturn]] void rethrow_for(const char* name, const Error& error, const TensorPtr& first, const TensorPtr& second) {
  std::string operands;
  for (const TensorPtr& each : {first, second})
    if (error.status() == FPT_ERR_PYTHON && each)
      operands +=
          concat(operands.empty() ? "\n  first: " : "\n  second: ", text_of(facts_of(each), each->same_layout()));
  throw Error(error.status(), concat(name, ": ", error.text(), operands));
}

}  // namespace

const char* name_of_values(int32_t what) noexcept {
  return what < FPT_VALUES || what > FPT_CROSS_ENTROPY ? "let" : names_of_values[what];
}

void let(int32_t what, const TensorPtr& target, const TensorPtr& first, const TensorPtr& second, int32_t reduction) {
  if (what < FPT_VALUES || what > FPT_CROSS_ENTROPY) fail(FPT_ERR_ARGUMENT, "there are no values ", what);
  const bool is_loss = what >= FPT_MSE_LOSS, layout = target->same_layout();
  if (is_loss && !second) fail(FPT_ERR_NOT_LOADED, name_of_values(what), ": the loss has no target");
  if (is_loss && (reduction < 0 || reduction > 2)) fail(FPT_ERR_ARGUMENT, "there is no reduction ", reduction);
  try {
    if (what == FPT_GRADIENT) return assign(target, in_layout(present_gradient(first), layout));
    assign(target, values_of(what, in_layout(first, layout), is_loss ? in_layout(second, layout) : nullptr, reduction));
  } catch (const Error& error) {
    rethrow_for(name_of_values(what), error, first, second);
  }
}

void backward(const TensorPtr& tensor, const TensorPtr& gradient, bool keeps_graph) {
  const bool layout = tensor->same_layout();
  try {
    const TensorPtr seen = gradient ? in_layout(gradient, layout) : nullptr;
    Engine& chosen = seen ? engine_of(*tensor, *seen) : engine_of(*tensor);
    if (chosen.backward(*tensor, seen.get(), keeps_graph)) return;
    TorchArguments given{{tensor}};
    if (seen) given.push_back({seen});
    given.push_back({keeps_graph, "retain_graph"});
    call_torch("Tensor.backward", given, layout);
  } catch (const Error& error) {
    rethrow_for("backward", error, tensor, gradient);
  }
}

/// A call of one function: its arguments as torch takes them, and calls of torch with results of its layout.
class FortranCall {
 public:
  FortranCall(std::string_view function, Args inputs, bool same_layout)
      : function_(function), inputs_(inputs), same_layout_(same_layout) {}

  /// Of the function of torch: "sum" of "reduce.sum".
  std::string_view function() const noexcept { return function_; }
  bool same_layout() const noexcept { return same_layout_; }
  int32_t count() const noexcept { return inputs_.count; }
  bool has(int32_t index) const noexcept { return index < inputs_.count; }

  /// A tensor, with its axes in the layout of the call; of an array a copy, since a result may be a view.
  TensorPtr tensor(int32_t index) const {
    const fpt_arg& arg = input(index);
    if (is_value(arg)) refuse(index, "a tensor");
    TensorPtr tensor = tensor_of(arg);
    return is_tensor_handle(arg.handle) ? tensor : call_for_tensor("Tensor.clone", {{tensor}}, same_layout_);
  }
  /// A tensor, or an array, whose elements are read before the call ends.
  TensorPtr read(int32_t index) const {
    if (is_value(input(index))) refuse(index, "a tensor or an array");
    return tensor_of(input(index));
  }
  bool is_single(int32_t index) const { return is_value(input(index)); }
  /// A number, logical or text.
  TorchValue value(int32_t index) const {
    if (!is_value(input(index))) refuse(index, "a single value");
    return torch_value(input(index));
  }
  template <class Type>
  Type value_of(int32_t index, const char* what) const {
    TorchValue found = value(index);
    if (auto* wanted = std::get_if<Type>(&found)) return std::move(*wanted);
    refuse(index, what);
  }
  std::string text(int32_t index) const { return value_of<std::string>(index, "a text"); }
  int64_t integer(int32_t index) const { return value_of<int64_t>(index, "an integer"); }
  bool logical(int32_t index) const { return value_of<bool>(index, "a logical"); }
  /// The elements of an integer array, or tensor, of rank 1.
  std::vector<int64_t> integers(int32_t index) const {
    const fpt_arg& arg = input(index);
    const TensorPtr tensor = is_value(arg) ? nullptr : Tensor::of_arg(arg);
    std::optional<std::vector<int64_t>> numbers = tensor ? integers_of(tensor->array()) : std::nullopt;
    if (!numbers) refuse(index, "integers of rank 1");
    return std::move(*numbers);
  }

  /// Of an argument of torch; empty for one without.
  std::string_view name(int32_t index) const { return input(index).name; }

  /// Axis of torch, from 0, for axis `number` of Fortran, from 1. FPT_ERR_ARGUMENT.
  int64_t axis(int64_t number, int64_t rank) const {
    if (number < 1 || number > rank)
      fail(FPT_ERR_ARGUMENT, "there is no axis ", number, " in a tensor of rank ", rank, ": axes count from 1");
    return same_layout_ ? number - 1 : rank - number;
  }
  /// Extents, or axes, of torch for those of Fortran.
  std::vector<int64_t> ordered(std::vector<int64_t> numbers) const {
    if (!same_layout_) std::reverse(numbers.begin(), numbers.end());
    return numbers;
  }
  /// A view whose order of elements in torch is that of Fortran.
  TensorPtr in_order_of_fortran(const TensorPtr& tensor) const {
    return same_layout_ ? reversed_view(tensor, same_layout_) : tensor;
  }

  TorchValue call(std::string_view function, const TorchArguments& given) const {
    return call_torch(function, given, same_layout_);
  }
  TensorPtr result_of(std::string_view function, const TorchArguments& given) const {
    return call_for_tensor(function, given, same_layout_);
  }

 private:
  const fpt_arg& input(int32_t index) const {
    if (!has(index)) fail(FPT_ERR_ARGUMENT, "argument ", index + 1, " is missing");
    const fpt_arg& given = inputs_[index];
    if (given.status != FPT_OK) require_described(given, argument_label("input", index, given));  // the text costs more
    return given;
  }
  [[noreturn]] static void refuse(int32_t index, const char* wanted) {
    fail(FPT_ERR_ARGUMENT, "argument ", index + 1, " must be ", wanted);
  }
  TensorPtr tensor_of(const fpt_arg& arg) const {
    return in_layout(is_tensor_handle(arg.handle) ? tensor_at(arg.handle) : Tensor::of_arg(arg, same_layout_),
                     same_layout_);
  }

  const std::string_view function_;
  const Args inputs_;
  const bool same_layout_;
};

namespace {

/// Element type and device, which are the arguments at `kind` and after it: what is empty is left to torch.
void add_kind(FortranCall& call, TorchArguments& given, int32_t kind) {
  if (std::string dtype = call.text(kind); !dtype.empty()) given.push_back({std::move(dtype), "dtype"});
  if (std::string device = call.text(kind + 1); !device.empty()) given.push_back({std::move(device), "device"});
}

/// A maker of torch with these and requires_grad.
TorchValue made_by(FortranCall& call, TorchArguments given, int32_t kind) {
  add_kind(call, given, kind);
  if (call.logical(kind + 2)) given.push_back({true, "requires_grad"});
  return call.call(call.function(), given);
}

/// torch.empty, zeros, ones, rand, randn, or full with its value.
TorchValue create(FortranCall& call) {
  TorchArguments given{{call.ordered(call.integers(0))}};
  if (call.has(4)) given.push_back({call.value(4)});
  return made_by(call, std::move(given), 1);
}

/// torch.arange, linspace or eye, of numbers.
TorchValue spread(FortranCall& call) {
  TorchArguments given;
  for (int32_t i = 3; i < call.count(); ++i) given.push_back({call.value(i)});
  return made_by(call, std::move(given), 0);
}

TorchValue like(FortranCall& call) { return made_by(call, {{call.tensor(0)}}, 1); }

/// Of another type or on another device; the tensor itself if it is that already.
TorchValue to(FortranCall& call) {
  TorchArguments given{{call.tensor(0)}};
  add_kind(call, given, 1);
  given.push_back({call.logical(3), "non_blocking"});
  return call.call("Tensor.to", given);
}

/// torch.sum, mean, linalg.vector_norm, ... along an axis, or over all of them. Not all of them know keepdim.
TorchValue reduce(FortranCall& call) {
  const TensorPtr tensor = call.tensor(0);
  const bool keeps = call.logical(1);
  const int64_t rank = rank_of(tensor);
  TorchArguments given{{tensor}};
  if (!call.has(2)) {
    if (call.function() == "logsumexp") {
      std::vector<int64_t> all(static_cast<std::size_t>(rank));
      std::iota(all.begin(), all.end(), 0);
      given.push_back({std::move(all), "dim"});
    }
    TorchValue result = call.call(call.function(), given);
    if (!keeps) return result;
    return call.call("Tensor.reshape",
                     {{std::move(result)}, {std::vector<int64_t>(static_cast<std::size_t>(rank), 1)}});
  }
  const int64_t axis = call.axis(call.integer(2), rank);
  given.push_back({axis, "dim"});
  TorchValue result = call.call(call.function(), given);
  return keeps ? call.call("unsqueeze", {{std::move(result)}, {axis}}) : result;
}

/// torch.argmax, argmin: where along an axis, or among all elements in the order of Fortran; from 1.
TorchValue place(FortranCall& call) {
  const TensorPtr tensor = call.tensor(0);
  TorchArguments given;
  if (call.has(1))
    given = {{tensor}, {call.axis(call.integer(1), rank_of(tensor))}};
  else
    given = {{call.in_order_of_fortran(tensor)}};
  return call.call("add", {{call.call(call.function(), given)}, {int64_t{1}}});
}

/// torch.softmax, cumsum, flip, sort, ... along an axis. Of values and places, the values.
TorchValue along(FortranCall& call) {
  const TensorPtr tensor = call.tensor(0);
  const int64_t axis = call.axis(call.integer(1), rank_of(tensor));
  if (call.function() == "flip") return call.call("flip", {{tensor}, {std::vector<int64_t>{axis}, "dims"}});
  return call.call(call.function(), {{tensor}, {axis, "dim"}});
}

/// torch.cat, stack; stack makes the axis.
TorchValue join(FortranCall& call) {
  if (!call.has(1)) fail(FPT_ERR_ARGUMENT, "there are no tensors to join");
  std::vector<TensorPtr> tensors;
  for (int32_t i = 1; i < call.count(); ++i) tensors.push_back(call.tensor(i));
  const int64_t rank = rank_of(tensors[0]) + (call.function() == "stack" ? 1 : 0);
  const int64_t axis = call.axis(call.integer(0), rank);
  return call.call(call.function(), {{std::move(tensors)}, {axis}});
}

/// The elements in the order of Fortran; one extent may be -1.
TorchValue reshape(FortranCall& call) {
  std::vector<int64_t> extents = call.integers(1);
  std::reverse(extents.begin(), extents.end());
  const TensorPtr elements = call.in_order_of_fortran(call.tensor(0));
  return call.in_order_of_fortran(call.result_of("Tensor.reshape", {{elements}, {std::move(extents)}}));
}

/// Axis i of the result is axis order(i) of the tensor.
TorchValue permute(FortranCall& call) {
  const TensorPtr tensor = call.tensor(0);
  const int64_t rank = rank_of(tensor);
  std::vector<int64_t> axes = call.integers(1);
  for (int64_t& axis : axes) axis = call.axis(axis, rank);
  return call.call("Tensor.permute", {{tensor}, {call.ordered(std::move(axes))}});
}

/// Elements first to last of an axis, both included, or to the end: a view.
TorchValue slice(FortranCall& call) {
  const TensorPtr tensor = call.tensor(0);
  const TensorFacts facts = facts_of(tensor);
  const int64_t axis = call.axis(call.integer(1), facts.rank()), extent = facts.shape[static_cast<std::size_t>(axis)];
  const int64_t first = call.integer(2), step = call.integer(3), last = call.has(4) ? call.integer(4) : extent;
  if (first < 1 || last > extent || step < 1)
    fail(FPT_ERR_ARGUMENT, "there is no section ", first, ':', last, ':', step, " of an axis with ", extent,
         " elements");
  return call.call("ops.aten.slice", {{tensor}, {axis}, {first - 1}, {std::max(last, int64_t{0})}, {step}});
}

/// Distances of neighbours along each axis, in elements.
TorchValue strides(FortranCall& call) {
  return call.ordered(std::get<std::vector<int64_t>>(call.call("Tensor.stride", {{call.tensor(0)}})));
}

TorchValue overwritten(FortranCall& call) {
  overwrite(call.tensor(0), call.is_single(1) ? call.value(1) : call.read(1));
  return {};
}

TorchValue loss(FortranCall& call) {
  return loss_of(call.function(), call.tensor(0), call.tensor(1), call.text(2), call.same_layout());
}

/// Overwrite the gradient with zeros, if there is one.
TorchValue clear_gradient(FortranCall& call) {
  if (const TensorPtr gradient = gradient_now(call.tensor(0))) {
    call.call("Tensor.detach_", {{gradient}});
    call.call("Tensor.zero_", {{gradient}});
  }
  return {};
}

TorchValue forget_gradient(FortranCall& call) {
  call.call("Tensor.grad.__set__", {{call.tensor(0)}, {}});
  return {};
}

TorchValue set_requires_grad(FortranCall& call) {
  call.call("Tensor.requires_grad_", {{call.tensor(0)}, {call.logical(1)}});
  return {};
}

struct Entry {
  std::string_view name;
  FortranFunction function;
};

constexpr Entry functions[] = {{"create", create},
                               {"spread", spread},
                               {"like", like},
                               {"to", to},
                               {"reduce", reduce},
                               {"place", place},
                               {"along", along},
                               {"join", join},
                               {"reshape", reshape},
                               {"permute", permute},
                               {"slice", slice},
                               {"strides", strides},
                               {"overwrite", overwritten},
                               {"loss", loss},
                               {"clear_grad", clear_gradient},
                               {"zero_grad", forget_gradient},
                               {"set_requires_grad", set_requires_grad}};

/// "reduce.sum" of "fortran.reduce.sum"; empty for other names.
std::string_view without_room(std::string_view name) noexcept {
  constexpr std::string_view room = "fortran.";
  return name.substr(0, room.size()) == room ? name.substr(room.size()) : std::string_view();
}

}  // namespace

FortranFunction fortran_function(std::string_view name) noexcept {
  const std::string_view own = without_room(name).substr(0, without_room(name).find('.'));
  const auto found =
      std::find_if(std::begin(functions), std::end(functions), [own](const Entry& each) { return each.name == own; });
  return found == std::end(functions) ? nullptr : found->function;
}

TorchValue call_fortran(FortranFunction function, std::string_view name, Args inputs, bool same_layout) {
  const std::string_view own = without_room(name);
  const std::size_t point = own.find('.');
  FortranCall call(point == std::string_view::npos ? std::string_view() : own.substr(point + 1), inputs, same_layout);
  try {
    return function(call);
  } catch (const Error& error) {
    throw Error(error.status(), concat(name, " of torch: ", error.text(),
                                       error.status() == FPT_ERR_PYTHON ? described(inputs, same_layout) : ""));
  }
}

}  // namespace fpt
