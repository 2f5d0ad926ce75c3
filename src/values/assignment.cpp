// SPDX-License-Identifier: MIT
#include "values/assignment.hpp"

#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "values/engine.hpp"

namespace fpt {
namespace {

TensorFacts facts_of(const TensorPtr& tensor) { return engine_of(*tensor).describe(*tensor); }

void call(std::string_view method, const TensorPtr& tensor) { call_torch(method, {{tensor}}, tensor->same_layout()); }

/// Of all of the memory behind them: a needless copy does no harm.
bool may_overlap(const TensorPtr& one, const TensorPtr& other) {
  const Range first = engine_of(*one).memory_of(*one), second = engine_of(*other).memory_of(*other);
  return first.begin < second.end && second.begin < first.end;
}

/// Into another one of its layout, in whose memory it may lie.
void copy_into(const TensorPtr& target, const TensorPtr& value) {
  const bool layout = target->same_layout();
  const TensorPtr source = may_overlap(target, value) ? call_for_tensor("Tensor.clone", {{value}}, layout) : value;
  engine_of(*target, *source).operate(copy_operation, target.get(), source.get(), nullptr, layout);
}

/// Values that are no more there have no graph. A view keeps its own: other parts of what it shows are still there.
void end_graph(const TensorPtr& tensor, const TensorFacts& facts) {
  if (facts.has_graph && !facts.is_view) call("Tensor.detach_", tensor);
}

/// Gradients are computed, or are not, as long as this lives.
class GradientMode {
 public:
  explicit GradientMode(bool wanted) : changes_(gradients_are_computed() != wanted), before_(!wanted) {
    if (changes_) compute_gradients(wanted);
  }
  ~GradientMode() {
    try {
      if (changes_) compute_gradients(before_);
    } catch (const std::exception&) {  // what cannot be switched on any more is not used
    }
  }
  GradientMode(const GradientMode&) = delete;
  GradientMode& operator=(const GradientMode&) = delete;

 private:
  const bool changes_, before_;
};

}  // namespace

bool gradients_are_computed() { return std::get<bool>(call_torch("is_grad_enabled", {}, false)); }

void compute_gradients(bool wanted) { call_torch("set_grad_enabled", {{wanted}}, false); }

void overwrite(const TensorPtr& target, const TorchValue& value) {
  const bool layout = target->same_layout();
  const auto* tensor = std::get_if<TensorPtr>(&value);
  const TensorFacts before = facts_of(target), given = tensor ? facts_of(*tensor) : TensorFacts();
  if (tensor && given.shape != before.shape)
    fail(FPT_ERR_SHAPE, "the tensor is ", text_of(before, layout), ", the array ", text_of(given, layout),
         "; nothing is broadcast");
  std::optional<GradientMode> mode;  // where nothing requires gradients, none are recorded
  if (before.requires_grad || given.requires_grad) mode.emplace(false);
  tensor ? copy_into(target, *tensor) : void(call_torch("Tensor.fill_", {{target}, {value}}, layout));
  end_graph(target, before);
}

void assign(const TensorPtr& target, const TensorPtr& value) {
  const TensorFacts before = facts_of(target);
  const bool has_graph = facts_of(value).requires_grad;
  if (before.has_graph)
    call("Tensor.detach_", target);  // the graph of earlier values would grow with every assignment
  else if (before.requires_grad && !has_graph)
    call_torch("Tensor.requires_grad_", {{target}, {false}}, target->same_layout());
  std::optional<GradientMode> mode;  // as above
  if (has_graph) mode.emplace(true);
  copy_into(target, value);
}

void write_through(const TensorPtr& target, const TensorPtr& given) {
  const TensorPtr value = given->same_layout() == target->same_layout() ? given : reversed_view(given);
  const TensorFacts before = facts_of(target), facts = facts_of(value);
  const bool fits = before.shape == facts.shape;
  if (!fits || before.dtype != facts.dtype)
    fail(fits ? FPT_ERR_DTYPE : FPT_ERR_SHAPE, "the array is ", text_of(before, target->same_layout()),
         ", and what is assigned to its tensor ", text_of(facts, target->same_layout()),
         "; nothing is broadcast or converted");
  try {
    if (before.has_graph) call("Tensor.detach_", target);  // as above
    copy_into(target, value);
  } catch (const Error& error) {
    throw Error(error.status(), concat("assigning to a tensor made of an array: ", error.text()));
  }
}

void require_writable(const TensorPtr& target) {
  const TensorFacts facts = facts_of(target);
  if (!facts.is_of_torch)
    fail(FPT_ERR_ARGUMENT,
         "an array of NumPy that a script returned cannot be an output: pass the array itself with torch_out");
  if (facts.has_graph && facts.is_view)
    fail(FPT_ERR_ARGUMENT,
         "a view of a tensor with a graph cannot be an output: assign to it with torch_call(\"Tensor.copy_\", ...)");
}

void note_written(const TensorPtr& target) noexcept {
  try {
    end_graph(target, facts_of(target));
    engine_of(*target).written(*target);
  } catch (const std::exception&) {  // a gradient that is gone has nobody who would use it
  }
}

TensorPtr gradient_now(const TensorPtr& tensor) {
  TorchValue found = call_torch("Tensor.grad.__get__", {{tensor}}, tensor->same_layout());
  auto* gradient = std::get_if<TensorPtr>(&found);
  return gradient ? std::move(*gradient) : nullptr;
}

TensorPtr present_gradient(const TensorPtr& tensor) {
  if (TensorPtr gradient = gradient_now(tensor)) return gradient;
  fail(FPT_ERR_ARGUMENT, "there is no gradient yet: call backward first, for a tensor with requires_grad");
}

TensorPtr reversed_view(const TensorPtr& tensor) {
  std::vector<int64_t> axes(static_cast<std::size_t>(facts_of(tensor).rank()));
  std::iota(axes.rbegin(), axes.rend(), 0);
  return call_for_tensor("Tensor.permute", {{tensor}, {std::move(axes)}}, !tensor->same_layout());
}

}  // namespace fpt
