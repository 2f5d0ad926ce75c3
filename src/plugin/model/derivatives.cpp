// SPDX-License-Identifier: MIT
#include "plugin/model/derivatives.hpp"

#include <ATen/ops/_make_dual.h>
#include <ATen/ops/_unpack_dual.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/forward_grad.h>

#include <charconv>

#include "plugin/autograd_engine.hpp"
#include "plugin/scalars.hpp"

namespace fpt::direct {
namespace {

using Tensors = std::vector<at::Tensor>;

constexpr std::pair<std::string_view, Derivative::Kind> kinds[] = {
    {"ftn_pytorch_tangent:", Derivative::Kind::tangent},
    {"ftn_pytorch_adjoint:", Derivative::Kind::adjoint},
    {"ftn_pytorch_jacobian:", Derivative::Kind::jacobian}};

/// The level of torch at which tangents are computed: there is one for the process.
class DualLevel {
 public:
  DualLevel() : alone_(mutex()), level_(torch::autograd::ForwardADLevel::get_next_idx()) {}
  ~DualLevel() { torch::autograd::ForwardADLevel::release_idx(level_); }
  DualLevel(const DualLevel&) = delete;
  DualLevel& operator=(const DualLevel&) = delete;

  at::Tensor dual(const at::Tensor& value, const at::Tensor& tangent) const {
    // copies: a function that changes its input in place changes the tangent with it
    return at::_make_dual(value.detach().clone(), tangent.detach().clone(), number());
  }
  /// Undefined where the value depends on nothing that has a tangent.
  at::Tensor tangent_of(const at::Tensor& value) const { return std::get<1>(at::_unpack_dual(value, number())); }

 private:
  static std::mutex& mutex() {
    static std::mutex& one = *new std::mutex;
    return one;
  }
  int64_t number() const noexcept { return static_cast<int64_t>(level_); }

  const std::lock_guard<std::mutex> alone_;
  const uint64_t level_;
};

bool is_differentiable(const at::Tensor& value) {
  return value.defined() && (value.is_floating_point() || value.is_complex());
}

/// A method with its arguments as tensors, and what messages say of it.
class Differentiated {
 public:
  Differentiated(const Derivative& wanted, const Settings& settings, Method& method, const torch::jit::Module& module,
                 Frame& frame, Inputs inputs)
      : name_(wanted.function),
        settings_(settings),
        method_(method),
        module_(module),
        frame_(frame),
        directions_{inputs.args, wanted.directions},
        inputs_{inputs.args + wanted.directions, inputs.count - wanted.directions},
        given_(static_cast<std::size_t>(inputs_.count)) {
    for (int32_t i = 0; i < inputs_.count; ++i) {
      const fpt_arg& arg = inputs_.args[i];
      if (is_value(arg) || !(is_real(arg.dtype) || is_complex(arg.dtype))) continue;
      arrays_.push_back(frame_.tensor(settings_, arg, "input", i));
      places_.push_back(static_cast<std::size_t>(i));
    }
  }

  void tangent(DirectAnswer& answer, const std::string& label) {
    const Tensors directions = paired(arrays_, "tangent", "input");
    const c10::InferenceMode normal(false);
    const c10::AutoGradMode none(false);  // gradients backward are not wanted, and cost memory
    const DualLevel level;
    for (std::size_t i = 0; i < arrays_.size(); ++i) given_[places_[i]] = level.dual(arrays_[i], directions[i]);
    const std::vector<std::string> names = run();
    Tensors tangents;
    for (const at::Tensor& result : results_) tangents.push_back(level.tangent_of(result));
    const auto is_there = [](const at::Tensor& each) { return each.defined(); };
    if (std::none_of(tangents.begin(), tangents.end(), is_there)) refuse_constant();
    for (std::size_t i = 0; i < tangents.size(); ++i)
      if (!tangents[i].defined()) tangents[i] = at::zeros_like(results_[i]);
    answer.set(std::move(tangents), names, label);
  }

  void adjoint(DirectAnswer& answer, const std::string& label) {
    follow();
    answer.set(gradients(paired(results_, "gradient", "output"), /*keeps_graph=*/false), {}, label);
  }

  /// Row by row, the axes of the result first.
  void jacobian(DirectAnswer& answer, const std::string& label) {
    follow();
    if (leaves_.size() != 1 || results_.size() != 1)
      fail(FPT_ERR_ARGUMENT, name_, " has ", leaves_.size(), " real or complex inputs and ", results_.size(),
           " such outputs; a Jacobian is that of one input and one output: use tangent or adjoint");
    const at::Tensor &leaf = leaves_[0], &result = results_[0];
    if (leaf.is_complex() || result.is_complex())
      fail(FPT_ERR_ARGUMENT, name_, " is complex, a Jacobian is that of real arrays: use tangent or adjoint");
    at::DimVector sizes(result.sizes());
    sizes.append(leaf.sizes().begin(), leaf.sizes().end());
    at::DimVector row_sizes{result.numel()};
    row_sizes.append(leaf.sizes().begin(), leaf.sizes().end());
    at::Tensor rows = at::empty(row_sizes, leaf.options().requires_grad(false));
    const at::Tensor unit = at::zeros_like(result.detach(), at::MemoryFormat::Contiguous);
    for (int64_t number = 0; number < result.numel(); ++number) {
      unit.view({-1})[number].fill_(1);
      rows[number].copy_(gradients({unit}, /*keeps_graph=*/true)[0]);
      unit.view({-1})[number].fill_(0);
    }
    answer.set(Tensors{rows.reshape(sizes)}, {}, label);
  }

 private:
  /// Run the method on what stands in place of its arguments: real and complex results, and their names if they have
  /// any.
  std::vector<std::string> run() {
    inputs_.tensors = given_.data();
    method_.push(settings_, frame_, inputs_);
    DirectAnswer whole;
    whole.set(method_.run(frame_, module_), method_.label());
    std::vector<std::string> names;
    for (std::size_t i = 0; i < whole.tensors().size(); ++i) {
      if (!is_differentiable(whole.tensors()[i])) continue;
      results_.push_back(whole.tensors()[i]);
      if (whole.name(i)) names.emplace_back(whole.name(i));
    }
    return names;
  }

  /// Run it with a graph from the arguments, which become leaves on the same memory.
  void follow() {
    const c10::InferenceMode normal(false);
    for (std::size_t i = 0; i < arrays_.size(); ++i) {
      leaves_.push_back(arrays_[i].detach().requires_grad_());
      given_[places_[i]] = leaves_[i].clone();  // which may be changed in place, as no leaf may
    }
    run();
    const auto is_followed = [](const at::Tensor& result) { return result.requires_grad(); };
    if (leaves_.empty() || std::none_of(results_.begin(), results_.end(), is_followed)) refuse_constant();
  }

  /// One direction for each array, like it. Arrays of rank 0 may have numbers.
  Tensors paired(const Tensors& arrays, const char* what, const char* whose) {
    if (static_cast<std::size_t>(directions_.count) != arrays.size())
      fail(FPT_ERR_ARGUMENT, directions_.count, " ", what, "s were given, but ", name_, " has ", arrays.size(),
           " real or complex ", whose, "s");
    Tensors pairs;
    for (int32_t i = 0; i < directions_.count; ++i) {
      const fpt_arg& arg = directions_.args[i];
      if (arg.name[0])
        fail(FPT_ERR_ARGUMENT, what, " ", i + 1, " of ", name_, " has the name \"", arg.name, "\": ", what,
             "s have an order and no names");
      const at::Tensor& array = arrays[static_cast<std::size_t>(i)];
      const auto refuse = [&](fpt_status status, const std::string& kind) {
        fail(status, what, " ", i + 1, " is ", kind, ", ", whose, " ", i + 1, " of ", name_, " is ",
             kind_of(array, settings_.same_layout));
      };
      const c10::IValue number = is_value(arg) ? value_of(arg) : c10::IValue();
      if (is_value(arg) && !(number.isScalar() && array.dim() == 0))
        refuse(FPT_ERR_SHAPE, number.isScalar() ? "a number" : "a text");
      pairs.push_back(is_value(arg) ? at::full({}, number.toScalar(), array.options().requires_grad(false))
                                    : frame_.tensor(settings_, arg, what, i));
      const at::Tensor& direction = pairs.back();
      const bool fits = direction.sizes() == array.sizes();
      if (!fits || direction.scalar_type() != array.scalar_type())
        refuse(fits ? FPT_ERR_DTYPE : FPT_ERR_SHAPE, kind_of(direction, settings_.same_layout));
    }
    return pairs;
  }

  /// Gradients of the leaves; nothing else is given one.
  Tensors gradients(const Tensors& directions, bool keeps_graph) {
    Tensors followed, theirs;
    for (std::size_t i = 0; i < results_.size(); ++i) {
      if (!results_[i].requires_grad()) continue;
      followed.push_back(results_[i]);
      theirs.push_back(directions[i]);
    }
    stay_with_first_engine();
    Tensors found = torch::autograd::grad(followed, leaves_, theirs, keeps_graph, /*create_graph=*/false,
                                          /*allow_unused=*/true);
    const auto is_there = [](const at::Tensor& each) { return each.defined(); };
    if (std::none_of(found.begin(), found.end(), is_there)) refuse_constant();
    for (std::size_t i = 0; i < found.size(); ++i)
      if (!found[i].defined()) found[i] = at::zeros_like(leaves_[i].detach());
    return found;
  }

  /// torch has not followed the computation, or parameters alone have made the results.
  [[noreturn]] void refuse_constant() const {
    fail(FPT_ERR_ARGUMENT, "no result of ", name_, " depends on its inputs as far as torch can follow: it may compute ",
         "under torch.no_grad(), or on x.detach()");
  }

  const std::string_view name_;
  const Settings& settings_;
  Method& method_;
  const torch::jit::Module& module_;
  Frame& frame_;
  Inputs directions_, inputs_;
  Tensors arrays_;                   // those of the inputs that are differentiated
  std::vector<std::size_t> places_;  // where they stand
  Tensors given_;                    // what the method gets in their places
  Tensors leaves_, results_;
};

}  // namespace

std::optional<Derivative> derivative_named(std::string_view name) {
  for (const auto& [prefix, kind] : kinds) {
    if (name.substr(0, prefix.size()) != prefix) continue;
    const char *begin = name.data() + prefix.size(), *end = name.data() + name.size();
    int32_t directions = 0;
    const std::from_chars_result read = std::from_chars(begin, end, directions);
    if (read.ec != std::errc() || read.ptr == end || *read.ptr != ':' || directions < 0) return std::nullopt;
    return Derivative{kind, directions, name.substr(static_cast<std::size_t>(read.ptr + 1 - name.data()))};
  }
  return std::nullopt;
}

void derive(const Derivative& wanted, const Settings& settings, Method& method, const torch::jit::Module& module,
            Inputs inputs, DirectAnswer& answer) {
  if (inputs.count < wanted.directions)
    fail(FPT_ERR_ARGUMENT, wanted.function, " is given fewer arguments than it says");
  const FramePool::Lease frame(method.frames());
  frame->begin(settings, /*may_keep=*/false, /*records=*/true);
  {
    Differentiated function(wanted, settings, method, module, *frame, inputs);
    const std::string label = settings.label(wanted.function);
    if (wanted.kind == Derivative::Kind::tangent) function.tangent(answer, label);
    if (wanted.kind == Derivative::Kind::adjoint) function.adjoint(answer, label);
    if (wanted.kind == Derivative::Kind::jacobian) function.jacobian(answer, label);
  }  // whose graph holds the arguments
  frame->finish(settings.label(wanted.function), answer.tensors());
}

}  // namespace fpt::direct
